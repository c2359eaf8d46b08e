// What hocket's interpreter needs of CUDA, on a CPU, and a launch of all ranks of a process.
//
// With a seed all threads of all blocks take turns, one step each, in an order that the seed decides; a nanosecond is a turn.
// Without one they are threads of the system. A launch makes several calls: between them each rank stores what it has
// and takes what is given, whatever the other ranks do.
#pragma once

#include <ucontext.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __launch_bounds__(...)

namespace cpu {

struct Block {
    std::atomic<unsigned> arrived{0}, generation{0};
    std::atomic<int> any[2]{};
};

struct Place {
    unsigned x;
};

// What a rank's caller does: its buffers, and what they get and have in each call.
struct Caller {
    u64 send, recv, send_bytes, recv_bytes, given, found;
};

struct Thread {
    Place thread, block, threads, blocks;
    Block *meets, *launches;
    const u64* call;
    const Caller* caller;
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool ended;
};

inline thread_local Thread* current = nullptr;
inline bool by_turns = false;
inline u64 turns = 0;
inline ucontext_t between;
inline int vectors_of_launch, type_of_launch, calls_of_launch;

// The memory that has a multicast address: that of each rank lies at another place.
inline u64 multicast = 0;
inline std::vector<u64> members;

inline void turn() {
    if (by_turns) swapcontext(&current->context, &between);
    else std::this_thread::yield();
}

}  // namespace cpu

#define threadIdx (cpu::current->thread)
#define blockIdx (cpu::current->block)
#define blockDim (cpu::current->threads)
#define gridDim (cpu::current->blocks)

template <class Last>
int meet(cpu::Block& block, unsigned threads, int value, Last last) {
    const unsigned generation = block.generation;
    if (value) block.any[generation % 2] = 1;
    if (++block.arrived == threads) {
        last();
        block.arrived = 0;
        block.any[(generation + 1) % 2] = 0;
        ++block.generation;
    } else {
        while (block.generation == generation) cpu::turn();
    }
    return block.any[generation % 2];
}

inline int __syncthreads_or(int value) {
    return meet(*cpu::current->meets, blockDim.x, value, [] {});
}

inline u64 acquire(const u64* from) {
    cpu::turn();
    return std::atomic_ref<u64>(*const_cast<u64*>(from)).load(std::memory_order_acquire);
}

inline void release(u64* to, u64 value) {
    cpu::turn();
    std::atomic_ref<u64>(*to).store(value, std::memory_order_release);
}

inline bool is_first(u64* flag) { return std::atomic_ref<u64>(*flag).exchange(1) == 0; }

inline u64 nanoseconds() {
    using namespace std::chrono;
    if (cpu::by_turns) return cpu::turns;
    return duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

inline Vector load(const Vector* from) {
    if (cpu::by_turns) cpu::turn();
    return *from;
}

inline void store(Vector* to, Vector value) {
    if (cpu::by_turns) cpu::turn();
    *to = value;
}

inline float of_bits(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

inline unsigned to_bits(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}

inline float of_half(unsigned bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float value = exponent == 31  ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                  : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    return bits >> 15 ? -value : value;
}

inline unsigned to_half(float value) {
    const unsigned sign = to_bits(value) >> 31 << 15;
    const float size = std::fabs(value);
    if (std::isnan(value)) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00;
    if (size < std::ldexp(1.0f, -14)) return sign | static_cast<unsigned>(std::nearbyint(std::ldexp(size, 24)));
    int exponent;
    const float fraction = std::frexp(size, &exponent);
    const float scaled = std::nearbyint(std::ldexp(fraction, 11));
    return sign | ((static_cast<unsigned>(exponent + 13) << 10) + static_cast<unsigned>(scaled));
}

inline void between_names() {}

template <int TYPE>
struct Sum;

inline Vector* of_member(const Vector* at, u64 member) {
    return reinterpret_cast<Vector*>(reinterpret_cast<u64>(at) - cpu::multicast + member);
}

inline void store_to_every(Vector* to, Vector value) {
    for (u64 member : cpu::members) store(of_member(to, member), value);
}

template <int TYPE>
Vector sum_of_every(const Vector* from) {
    Sum<TYPE> sum;
    bool is_first = true;
    for (u64 member : cpu::members) {
        const Vector value = load(of_member(from, member));
        is_first ? sum.set(value) : sum.add(value);
        is_first = false;
    }
    return sum.get();
}

extern "C" void hocket_interpret(const u64* call, int vectors, int type);

namespace cpu {

inline void copy(u64 to, u64 from, u64 bytes) {
    for (u64 at = 0; at < bytes; at += sizeof(Vector))
        store(reinterpret_cast<Vector*>(to + at), load(reinterpret_cast<const Vector*>(from + at)));
}

// Ends the call before, if there is one, and begins a call, if there is one more.
inline void call_again(int call) {
    const Caller& own = *current->caller;
    meet(*current->launches, blockDim.x * gridDim.x, 0, [&] {
        if (call > 0) copy(own.found + (call - 1) * own.recv_bytes, own.recv, own.recv_bytes);
        if (call < calls_of_launch) copy(own.send, own.given + call * own.send_bytes, own.send_bytes);
    });
}

inline void run() {
    for (int call = 0; call < calls_of_launch; ++call) {
        call_again(call);
        hocket_interpret(current->call, vectors_of_launch, type_of_launch);
    }
    call_again(calls_of_launch);
    current->ended = true;
    if (by_turns) swapcontext(&current->context, &between);
}

// Lets one thread after the other take a step; for a while those of one rank take few.
inline void take_turns(std::vector<std::unique_ptr<Thread>>& all, u64 seed) {
    std::vector<Thread*> left;
    for (auto& each : all) {
        each->stack = std::make_unique<char[]>(1 << 16);
        getcontext(&each->context);
        each->context.uc_stack.ss_sp = each->stack.get();
        each->context.uc_stack.ss_size = 1 << 16;
        makecontext(&each->context, run, 0);
        left.push_back(each.get());
    }
    u64 slow = 0;
    for (u64 random = seed | 1; !left.empty(); ++turns) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        if (turns % 256 == 0) slow = (random >> 20) % all.back()->call[RANKS];
        const size_t which = random % left.size();
        current = left[which];
        if (current->call[RANK] == slow && (random >> 40) % 32 != 0) continue;
        swapcontext(&between, &current->context);
        if (!current->ended) continue;
        left[which] = left.back();
        left.pop_back();
    }
}

}  // namespace cpu

// Names the memory of which `base` is the multicast address, by where it begins at each rank.
extern "C" void multicast_memory(u64 base, const u64* members, int ranks) {
    cpu::multicast = base;
    cpu::members.assign(members, members + ranks);
}

// Launches calls at all ranks; `seed` 0 means threads of the system.
extern "C" void launch(int ranks, const u64* const* programs, const int* blocks, const cpu::Caller* callers, int calls,
                       int threads, int vectors, int type, u64 seed) {
    cpu::by_turns = seed != 0;
    cpu::turns = 0;
    cpu::vectors_of_launch = vectors;
    cpu::type_of_launch = type;
    cpu::calls_of_launch = calls;
    std::vector<std::unique_ptr<cpu::Thread>> all;
    std::vector<std::unique_ptr<cpu::Block>> meets;
    for (int rank = 0; rank < ranks; ++rank) {
        meets.push_back(std::make_unique<cpu::Block>());
        cpu::Block* launches = meets.back().get();
        for (int block = 0; block < blocks[rank]; ++block) {
            meets.push_back(std::make_unique<cpu::Block>());
            for (int thread = 0; thread < threads; ++thread) {
                auto made = std::make_unique<cpu::Thread>();
                const auto place = [](int number) { return cpu::Place{static_cast<unsigned>(number)}; };
                made->thread = place(thread), made->block = place(block);
                made->threads = place(threads), made->blocks = place(blocks[rank]);
                made->meets = meets.back().get();
                made->launches = launches;
                made->call = programs[rank];
                made->caller = callers + rank;
                made->ended = false;
                all.push_back(std::move(made));
            }
        }
    }
    if (cpu::by_turns) {
        cpu::take_turns(all, seed);
        return;
    }
    std::vector<std::thread> running;
    for (auto& each : all)
        running.emplace_back([&each] {
            cpu::current = each.get();
            cpu::run();
        });
    for (auto& each : running) each.join();
}

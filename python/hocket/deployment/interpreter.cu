// hocket's interpreter of programs on a GPU: one persistent thread block for each block of a program.
//
// A program is the words of crates/hocket-program/src/program/words.rs, which are checked there. `call` has, in words of
// 64 bits: what this file names below, then for each rank the addresses of its four memories, then the words of this rank.
// All of it stays from launch to launch, so that a CUDA graph replays a launch rightly: what changes lies in `state`.
//
// A wait has an end. If it comes, the first who sees it writes who waits for what into `report`, and all leave; from
// then on launches do nothing, since this rank has fallen out of step.

typedef unsigned long long u64;
typedef long long i64;

struct alignas(16) Vector {
    unsigned word[4];
};

enum Header { RANK, RANKS, LIMIT, REPORT, STATE, MULTICAST, MEMORIES = MULTICAST + 3 };
enum { INPUT, OUTPUT, SCRATCH, SLOTS, MEMORIES_OF_RANK };
enum Code { END, MEET, SIGNAL, WAIT, SUM };
enum Type { F32, F16, BF16, I32, I64, I8 };
enum { EVERY = (1 << 20) - 1 };

#ifdef __CUDACC__

__device__ inline u64 acquire(const u64* from) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(__cvta_generic_to_global(from)) : "memory");
    return value;
}

__device__ inline void release(u64* to, u64 value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(value) : "memory");
}

__device__ inline bool is_first(u64* flag) { return atomicExch(flag, 1ull) == 0; }

__device__ inline u64 nanoseconds() {
    u64 value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
    return value;
}

__device__ inline Vector load(const Vector* from) { return *from; }
__device__ inline void store(Vector* to, Vector value) { *to = value; }

__device__ inline float of_half(unsigned bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(bits)));
    return value;
}

__device__ inline unsigned to_half(float value) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ inline float of_bits(unsigned bits) { return __uint_as_float(bits); }
__device__ inline unsigned to_bits(float value) { return __float_as_uint(value); }

// Multicast addresses are other names of memory that is also reached by its own.
#if __CUDA_ARCH__ >= 900
__device__ inline void between_names() { asm volatile("fence.proxy.alias;" ::: "memory"); }

__device__ inline void store_to_every(Vector* to, Vector value) {
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "f"(of_bits(value.word[0])), "f"(of_bits(value.word[1])), "f"(of_bits(value.word[2])),
                 "f"(of_bits(value.word[3]))
                 : "memory");
}

template <int TYPE>
__device__ inline Vector sum_of_every(const Vector* from) {
    const auto at = __cvta_generic_to_global(from);
    Vector sum;
    unsigned* word = sum.word;
    if constexpr (TYPE == F32) {
        float value[4];
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(value[0]), "=f"(value[1]), "=f"(value[2]), "=f"(value[3])
                     : "l"(at)
                     : "memory");
        for (int i = 0; i < 4; ++i) word[i] = to_bits(value[i]);
    } else if constexpr (TYPE == F16) {
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0, %1, %2, %3}, [%4];"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "l"(at)
                     : "memory");
    } else if constexpr (TYPE == BF16) {
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "l"(at)
                     : "memory");
    } else if constexpr (TYPE == I32) {
        for (int i = 0; i < 4; ++i)
            asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u32 %0, [%1];"
                         : "=r"(word[i])
                         : "l"(at + 4 * i)
                         : "memory");
    } else {
        for (int i = 0; i < 2; ++i) {
            u64 value;
            asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u64 %0, [%1];"
                         : "=l"(value)
                         : "l"(at + 8 * i)
                         : "memory");
            word[2 * i] = static_cast<unsigned>(value);
            word[2 * i + 1] = static_cast<unsigned>(value >> 32);
        }
    }
    return sum;
}
#else
// GPUs before sm_90 have no multicast addresses.
__device__ inline void between_names() {}
__device__ inline void store_to_every(Vector*, Vector) {}
template <int TYPE>
__device__ inline Vector sum_of_every(const Vector*) { return Vector(); }
#endif

#else
#include "cuda_on_cpu.h"
#endif

// 16 bytes of numbers that are added; small floats in 32 bits, rounded once.
template <int TYPE>
struct Sum {
    float value[TYPE == F32 ? 4 : 8];

    __device__ static float element(Vector from, int i) {
        if (TYPE == F32) return of_bits(from.word[i]);
        const unsigned bits = from.word[i / 2] >> (i % 2 * 16) & 0xffff;
        return TYPE == F16 ? of_half(bits) : of_bits(bits << 16);
    }
    __device__ void set(Vector from) {
        for (int i = 0; i < (TYPE == F32 ? 4 : 8); ++i) value[i] = element(from, i);
    }
    __device__ void add(Vector from) {
        for (int i = 0; i < (TYPE == F32 ? 4 : 8); ++i) value[i] += element(from, i);
    }
    __device__ static unsigned rounded(float value) {
        if (TYPE == F16) return to_half(value);
        const unsigned bits = to_bits(value);
        if (value != value) return bits >> 16 | 0x40;
        return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
    __device__ Vector get() const {
        Vector to;
        for (int i = 0; i < 4; ++i)
            to.word[i] = TYPE == F32 ? to_bits(value[i]) : rounded(value[2 * i]) | rounded(value[2 * i + 1]) << 16;
        return to;
    }
};

template <>
struct Sum<I32> {
    Vector value{};

    __device__ void set(Vector from) { value = from; }
    __device__ void add(Vector from) {
        for (int i = 0; i < 4; ++i) value.word[i] += from.word[i];
    }
    __device__ Vector get() const { return value; }
};

template <>
struct Sum<I64> : Sum<I32> {
    __device__ void add(Vector from) {
        for (int i = 0; i < 4; i += 2) {
            const u64 one = value.word[i] | u64(value.word[i + 1]) << 32;
            const u64 sum = one + (from.word[i] | u64(from.word[i + 1]) << 32);
            value.word[i] = static_cast<unsigned>(sum);
            value.word[i + 1] = static_cast<unsigned>(sum >> 32);
        }
    }
};

template <>
struct Sum<I8> : Sum<I32> {
    __device__ void add(Vector from) {
        const unsigned low = 0x7f7f7f7f;
        for (int i = 0; i < 4; ++i) {
            const unsigned one = value.word[i], other = from.word[i];
            value.word[i] = ((one & low) + (other & low)) ^ ((one ^ other) & ~low);
        }
    }
};

__device__ inline int rank_of(u64 span) { return static_cast<int>(span >> 40 & EVERY); }
__device__ inline int buffer_of(u64 span) { return static_cast<int>(span >> 60 & 3); }

__device__ inline u64 memory(const u64* call, u64 rank, int which) {
    return call[MEMORIES + MEMORIES_OF_RANK * rank + which];
}

// Sums an operation's sources into its targets, several vectors of a thread at a time.
template <int TYPE>
__device__ void sum(const u64* call, const u64* op, int vectors) {
    enum { AT_ONCE = TYPE == F16 || TYPE == BF16 ? 2 : 4 };
    const int sources = static_cast<int>(op[0] >> 8 & 0xffffff), targets = static_cast<int>(op[0] >> 32);
    const u64* spans = op + 1;
    const i64 threads = blockDim.x, many = static_cast<i64>(spans[0] >> 24 & 0xffff) * vectors;
    const int ranks = static_cast<int>(call[RANKS]);
    for (i64 first = threadIdx.x; first < many; first += AT_ONCE * threads) {
        Sum<TYPE> sums[AT_ONCE];
        for (int i = 0; i < sources + targets; ++i) {
            const u64 span = spans[i];
            const i64 begin = static_cast<i64>(span & 0xffffff) * vectors + first;
            const int of = rank_of(span);
            const u64 multicast = of == EVERY && TYPE != I8 ? call[MULTICAST + buffer_of(span)] : 0;
            const bool by_switch = multicast != 0;
            if (by_switch) between_names();
            const int last = of == EVERY && !by_switch ? ranks : 1;
            for (int rank = 0; rank < last; ++rank) {
                const u64 base = by_switch ? multicast : memory(call, of == EVERY ? rank : of, buffer_of(span));
                Vector* at = reinterpret_cast<Vector*>(base) + begin;
#pragma unroll
                for (int j = 0; j < AT_ONCE; ++j, at += threads) {
                    if (first + j * threads >= many) break;
                    if (i >= sources) {
                        if (by_switch) store_to_every(at, sums[j].get());
                        else store(at, sums[j].get());
                        continue;
                    }
                    const Vector value = by_switch ? sum_of_every<TYPE>(at) : load(at);
                    if (i == 0 && rank == 0) sums[j].set(value);
                    else sums[j].add(value);
                }
            }
            if (by_switch) between_names();
        }
    }
}

__device__ inline void sum_of(int type, const u64* call, const u64* op, int vectors) {
    const bool is_copy = (op[0] >> 8 & 0xffffff) == 1 && rank_of(op[1]) != EVERY;
    switch (is_copy ? I32 : type) {
        case F32: return sum<F32>(call, op, vectors);
        case F16: return sum<F16>(call, op, vectors);
        case BF16: return sum<BF16>(call, op, vectors);
        case I64: return sum<I64>(call, op, vectors);
        case I8: return sum<I8>(call, op, vectors);
        default: return sum<I32>(call, op, vectors);
    }
}

// What a slot has in this call after a signal.
__device__ inline i64 value_of(u64 counts, u64 epoch) {
    return static_cast<i64>(epoch * (counts >> 32)) + static_cast<int>(counts & 0xffffffff);
}

// Waits for a slot; false if the time is over, or if another thread of this rank has found that.
__device__ inline bool wait(const u64* call, const u64* slot, i64 wanted, int operation) {
    u64* dead = reinterpret_cast<u64*>(call[STATE]) + gridDim.x;
    u64 begin = 0;
    for (unsigned tries = 1; static_cast<i64>(acquire(slot)) < wanted; ++tries) {
        if (tries % 64 != 0) continue;
        if (acquire(dead) != 0) return false;
        const u64 now = nanoseconds();
        if (begin == 0) begin = now;
        if (now - begin < call[LIMIT]) continue;
        if (is_first(dead)) {
            u64* report = reinterpret_cast<u64*>(call[REPORT]);
            report[1] = call[RANK];
            report[2] = blockIdx.x;
            report[3] = operation;
            release(report, 1);
        }
        return false;
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(512, 1) hocket_interpret(const u64* call, int vectors, int type) {
    const u64* words = call + MEMORIES + MEMORIES_OF_RANK * call[RANKS];
    u64* state = reinterpret_cast<u64*>(call[STATE]);
    const u64 epoch = state[blockIdx.x];
    const unsigned thread = threadIdx.x;
    bool failed = acquire(state + gridDim.x) != 0;
    const u64* op = words + words[1 + blockIdx.x];
    for (int operation = 0;; ++operation) {
        const int code = static_cast<int>(op[0] & 0xff);
        const unsigned many = static_cast<unsigned>(op[0] >> 8 & 0xffffff);
        if (code == END || (code == MEET && __syncthreads_or(failed))) break;
        if (code == SIGNAL || code == WAIT) {
            for (unsigned i = thread; i < many && !failed; i += blockDim.x) {
                const u64 place = op[1 + 2 * i];
                u64* slot = reinterpret_cast<u64*>(memory(call, place >> 32, SLOTS)) + (place & 0xffffffff);
                const i64 value = value_of(op[2 + 2 * i], epoch);
                if (code == SIGNAL) release(slot, static_cast<u64>(value));
                else failed = !wait(call, slot, value, operation);
            }
            op += 1 + 2 * many;
        } else if (code == SUM) {
            if (!failed) sum_of(type, call, op, vectors);
            op += 1 + many + (op[0] >> 32);
        } else {
            op += 1;
        }
    }
    if (!__syncthreads_or(failed) && thread == 0) state[blockIdx.x] = epoch + 1;
}

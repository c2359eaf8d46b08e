// One rank of MSCCL++'s executor, on GPU 0, beside the other ranks as processes of their own.
//
// It loads execution plans, gives each rank its own numbers, executes, and compares what comes out with what the collective
// should give. bench/mscclpp_on_one_gpu.py builds and starts it.
//
//   mscclpp_executor RANK RANKS PORT JOBS RESULTS
//
// A job is one line of JOBS: NAME PLANS COLLECTIVE in|out TYPE LL8|LL16 SIZES CALLS OFFSET SECONDS. PLANS are files joined by
// '+', which take turns from call to call (COLLECTIVE then too); SIZES are bytes joined by ',', run one after the other on the same buffers; OFFSET
// is where buffers start in their allocation. A line of RESULTS is: NAME SIZE right|wrong|refused|stuck MILLISECONDS DETAIL.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <mscclpp/core.hpp>
#include <mscclpp/executor.hpp>
#include <mscclpp/gpu_utils.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#ifdef HOCKET_OWN_NUMA
// For machines whose GPU has no NUMA node in /sys, where the library's own throw.
namespace mscclpp {
int getDeviceNumaNode(int) { return -1; }
void numaBind(int) {}
}  // namespace mscclpp
#endif

namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  std::string name, plans, collective, place, type, packet, sizes;
  int calls = 1;
  size_t offset = 0;
  double seconds = 10;
};

// Ends the process when a job takes too long: a kernel that waits forever cannot be stopped otherwise.
class Watchdog {
 public:
  Watchdog(FILE* results) : results_(results) {
    std::thread([this] { run(); }).detach();
  }
  void start(const std::string& name, size_t size, double seconds) {
    text_ = name + " " + std::to_string(size);
    end_ = Clock::now().time_since_epoch().count() + static_cast<int64_t>(seconds * 1e9);
  }
  void stop() { end_ = INT64_MAX; }

 private:
  void run() {
    while (Clock::now().time_since_epoch().count() < end_) usleep(20000);
    fprintf(results_, "%s stuck 0 it did not end in time\n", text_.c_str());
    fflush(results_);
    _exit(3);
  }
  FILE* results_;
  std::string text_;
  std::atomic<int64_t> end_{INT64_MAX};
};

void cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream rest(text);
  for (std::string each; std::getline(rest, each, at);) parts.push_back(each);
  return parts;
}

std::shared_ptr<char> hostMemory(size_t bytes) {
  void* memory;
  cuda(cudaMallocHost(&memory, bytes + 16), "host memory");
  return std::shared_ptr<char>(static_cast<char*>(memory), [](char* each) { cudaFreeHost(each); });
}

size_t width(const std::string& type) { return type == "u8" ? 1 : type == "f16" || type == "bf16" ? 2 : 4; }

mscclpp::DataType dataType(const std::string& type) {
  if (type == "i32") return mscclpp::DataType::INT32;
  if (type == "u32") return mscclpp::DataType::UINT32;
  if (type == "u8") return mscclpp::DataType::UINT8;
  if (type == "f16") return mscclpp::DataType::FLOAT16;
  if (type == "bf16") return mscclpp::DataType::BFLOAT16;
  if (type == "f32") return mscclpp::DataType::FLOAT32;
  throw std::runtime_error("no type " + type);
}

// A number for each rank, element and call.
uint32_t mixed(uint32_t rank, uint32_t index, uint32_t call) {
  uint32_t x = index * 0x9E3779B1u ^ (rank + 1) * 0x85EBCA77u ^ (call + 1) * 0xC2B2AE3Du;
  x ^= x >> 15;
  x *= 0x2C1B3C6Du;
  return x ^ x >> 13;
}

bool isWhole(const std::string& type) { return type == "i32" || type == "u32" || type == "u8"; }

// The element as a number: what the bytes written by `store` hold.
double real(const std::string& type, uint32_t bits) {
  float value = static_cast<float>(static_cast<int32_t>(bits)) / 2147483648.0f;
  if (type == "f16") return __half2float(__float2half(value));
  if (type == "bf16") return __bfloat162float(__float2bfloat16(value));
  return value;
}

void store(const std::string& type, uint32_t bits, char* at) {
  if (isWhole(type)) {
    memcpy(at, &bits, width(type));
  } else if (type == "f32") {
    float value = static_cast<float>(real(type, bits));
    memcpy(at, &value, 4);
  } else if (type == "f16") {
    __half value = __float2half(static_cast<float>(real(type, bits)));
    memcpy(at, &value, 2);
  } else {
    __nv_bfloat16 value = __float2bfloat16(static_cast<float>(real(type, bits)));
    memcpy(at, &value, 2);
  }
}

double load(const std::string& type, const char* at) {
  if (type == "f32") {
    float value;
    memcpy(&value, at, 4);
    return value;
  }
  if (type == "f16") {
    __half value;
    memcpy(&value, at, 2);
    return __half2float(value);
  }
  __nv_bfloat16 value;
  memcpy(&value, at, 2);
  return __bfloat162float(value);
}

// Who contributes what to an element of a rank's output.
struct Task {
  std::string collective;
  uint32_t rank, ranks;
  size_t input, output;  // elements

  bool isChecked() const { return collective != "reduce" || rank == 0; }
  bool isSum() const { return collective == "allreduce" || collective == "reduce" || collective == "reducescatter"; }
  // Rank and element of the input, of what is only moved.
  std::pair<uint32_t, uint32_t> source(size_t j) const {
    if (collective == "broadcast") return {0, j};
    if (collective == "allgather") return {j / input, j % input};
    size_t part = output / ranks;
    return {j / part, rank * part + j % part};
  }
  uint32_t first() const { return collective == "reducescatter" ? rank * output : 0; }
};

// Where an output differs from what it should be; empty if it does not.
std::string compared(const Task& task, const std::string& type, const char* got, int call) {
  size_t wrong = 0, firstWrong = 0;
  size_t each = width(type);
  double digits = type == "f32" ? 24 : type == "f16" ? 11 : 8;
  for (size_t j = 0; j < task.output; ++j) {
    const char* at = got + j * each;
    bool isRight;
    if (!task.isSum()) {
      auto [from, index] = task.source(j);
      char want[4] = {};
      store(type, mixed(from, index, call), want);
      isRight = memcmp(at, want, each) == 0;
    } else if (isWhole(type)) {
      uint32_t want = 0;
      for (uint32_t r = 0; r < task.ranks; ++r) want += mixed(r, task.first() + j, call);
      isRight = memcmp(at, &want, each) == 0;
    } else {
      // Each of n - 1 sums rounds by half a unit in the last place of what is summed, at most.
      double want = 0, size = 0;
      for (uint32_t r = 0; r < task.ranks; ++r) {
        double value = real(type, mixed(r, task.first() + j, call));
        want += value;
        size += std::fabs(value);
      }
      double unit = std::ldexp(1.0, std::ilogb(size) + 1 - static_cast<int>(digits));
      isRight = std::fabs(load(type, at) - want) <= unit * (task.ranks - 1) / 2;
    }
    if (!isRight && wrong++ == 0) firstWrong = j;
  }
  if (wrong == 0) return "";
  return "call " + std::to_string(call) + ": " + std::to_string(wrong) + " of " + std::to_string(task.output) +
         " elements, from " + std::to_string(firstWrong);
}

// A buffer with guards on both sides, which nobody may touch.
struct Area {
  static constexpr size_t kGuard = 4096;
  std::shared_ptr<char> memory;
  char* at;
  size_t bytes;

  Area(size_t bytes, size_t offset) : bytes(bytes) {
    size_t all = offset + bytes + kGuard;
    memory = mscclpp::GpuBuffer(all).memory();
    at = memory.get() + offset;
    cuda(cudaMemset(memory.get(), 0x5A, all), "memset");
    cuda(cudaDeviceSynchronize(), "memset");
  }
  bool isWhole() const {
    size_t before = at - memory.get();
    std::vector<unsigned char> guard(before + kGuard);
    cuda(cudaMemcpy(guard.data(), memory.get(), before, cudaMemcpyDeviceToHost), "guard");
    cuda(cudaMemcpy(guard.data() + before, at + bytes, kGuard, cudaMemcpyDeviceToHost), "guard");
    for (unsigned char each : guard) {
      if (each != 0x5A) return false;
    }
    return true;
  }
};

class Rank {
 public:
  Rank(int rank, int ranks, const std::string& port, FILE* results)
      : rank_(rank), ranks_(ranks), results_(results), dog_(results) {
    cuda(cudaSetDevice(0), "device");
    cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    bootstrap_ = std::make_shared<mscclpp::TcpBootstrap>(rank, ranks);
    dog_.start("bootstrap", 0, 30);
    bootstrap_->initialize("lo:127.0.0.1:" + port);
    bootstrap_->barrier();
    dog_.stop();
  }

  void run(const Job& job) {
    std::vector<size_t> sizes;
    for (const auto& each : split(job.sizes, ',')) sizes.push_back(std::stoull(each));
    size_t largest = *std::max_element(sizes.begin(), sizes.end());
    dog_.start(job.name, sizes[0], job.seconds);
    bootstrap_->barrier();
    auto communicator = std::make_shared<mscclpp::Communicator>(bootstrap_);
    auto executor = std::make_shared<mscclpp::Executor>(communicator);
    std::vector<mscclpp::ExecutionPlan> plans;
    for (const auto& each : split(job.plans, '+')) plans.emplace_back(each, rank_);
    bool inPlace = job.place == "in";
    Area first(largest, job.offset);
    std::unique_ptr<Area> second;
    if (!inPlace) second = std::make_unique<Area>(largest, job.offset);
    for (size_t size : sizes) {
      dog_.start(job.name, size, job.seconds);
      std::string result = "right", detail;
      auto begun = Clock::now();
      try {
        detail = once(job, size, plans, *executor, first.at, inPlace ? first.at : second->at);
        if (!first.isWhole() || (second && !second->isWhole())) detail += " bytes outside of the buffers were written";
        if (!detail.empty()) result = "wrong";
      } catch (const std::exception& error) {
        result = "refused";
        detail = error.what();
      }
      for (char& c : detail) c = c == '\n' ? ' ' : c;
      long took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun).count();
      fprintf(results_, "%s %zu %s %ld %s\n", job.name.c_str(), size, result.c_str(), took, detail.c_str());
      fflush(results_);
      bootstrap_->barrier();
    }
    executor.reset();
    bootstrap_->barrier();
    dog_.stop();
  }

 private:
  // One call: its buffers, and what should come out of it.
  struct Call {
    Task task;
    char *input, *output;
    size_t inBytes, outBytes;
  };

  Call call(const std::string& collective, size_t size, size_t width, char* a, char* b) const {
    bool isGather = collective == "allgather", isScatter = collective == "reducescatter";
    size_t inBytes = isGather ? size / ranks_ : size, outBytes = isScatter ? size / ranks_ : size;
    char* input = a == b && isGather ? a + rank_ * inBytes : a;
    char* output = a == b && isScatter ? a + rank_ * outBytes : b;
    Task task{collective, static_cast<uint32_t>(rank_), static_cast<uint32_t>(ranks_), inBytes / width,
              outBytes / width};
    return {task, input, output, inBytes, outBytes};
  }

  std::string once(const Job& job, size_t size, const std::vector<mscclpp::ExecutionPlan>& plans,
                   mscclpp::Executor& executor, char* a, char* b) {
    std::vector<Call> calls;
    for (const auto& collective : split(job.collective, '+')) {
      calls.push_back(call(collective, size, width(job.type), a, b));
    }
    // Row `number` holds what call `number` is given or gives; the last of `taken`, what is left of the input.
    auto given = hostMemory(size * job.calls), taken = hostMemory(size * (job.calls + 1));
    for (int number = 0; number < job.calls; ++number) {
      const Call& one = calls[number % calls.size()];
      for (size_t j = 0; j < one.task.input; ++j) {
        store(job.type, mixed(rank_, j, number), given.get() + number * size + j * width(job.type));
      }
    }
    auto packet = job.packet == "LL8" ? mscclpp::PacketType::LL8 : mscclpp::PacketType::LL16;
    auto move = [&](char* to, const char* from, size_t bytes, cudaMemcpyKind kind) {
      cuda(cudaMemcpyAsync(to, from, bytes, kind, stream_), "copy");
    };
    for (int number = 0; number < job.calls; ++number) {
      const Call& one = calls[number % calls.size()];
      move(one.input, given.get() + number * size, one.inBytes, cudaMemcpyHostToDevice);
      executor.execute(rank_, one.input, one.output, one.inBytes, one.outBytes, dataType(job.type),
                       plans[number % plans.size()], stream_, packet);
      cuda(cudaGetLastError(), "launch");
      move(taken.get() + number * size, one.output, one.outBytes, cudaMemcpyDeviceToHost);
    }
    const Call& last = calls[(job.calls - 1) % calls.size()];
    char* after = taken.get() + job.calls * size;
    move(after, last.input, last.inBytes, cudaMemcpyDeviceToHost);
    cuda(cudaStreamSynchronize(stream_), "execution");
    for (int number = 0; number < job.calls; ++number) {
      const Task& task = calls[number % calls.size()].task;
      if (!task.isChecked()) continue;
      std::string wrong = compared(task, job.type, taken.get() + number * size, number);
      if (!wrong.empty()) return wrong;
    }
    bool isSame = memcmp(after, given.get() + (job.calls - 1) * size, last.inBytes) == 0;
    return a == b || isSame ? "" : "the input was changed";
  }

  int rank_, ranks_;
  FILE* results_;
  Watchdog dog_;
  cudaStream_t stream_;
  std::shared_ptr<mscclpp::TcpBootstrap> bootstrap_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: mscclpp_executor RANK RANKS PORT JOBS RESULTS\n";
    return 2;
  }
  FILE* results = fopen(argv[5], "w");
  if (results == nullptr) return 2;
  try {
    Rank rank(std::atoi(argv[1]), std::atoi(argv[2]), argv[3], results);
    std::ifstream jobs(argv[4]);
    for (std::string line; std::getline(jobs, line);) {
      Job job;
      std::stringstream words(line);
      words >> job.name >> job.plans >> job.collective >> job.place >> job.type >> job.packet >> job.sizes >> job.calls >>
          job.offset >> job.seconds;
      if (!words) throw std::runtime_error("not a job: " + line);
      rank.run(job);
    }
  } catch (const std::exception& error) {
    fprintf(results, "- 0 failed 0 %s\n", error.what());
    fflush(results);
    _exit(4);
  }
  fclose(results);
  _exit(0);
}

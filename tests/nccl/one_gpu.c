/* Lets processes that share one GPU pass for the GPUs of a machine, so that a real NCCL can be tried.
 *
 * Preloaded into each process (LD_PRELOAD). It answers in place of the driver and of NVML where NCCL asks
 * what GPU this is, and in place of the C library where it asks for network interfaces. All else, memory
 * and kernels among it, is the driver's own.
 *
 *   ONE_GPU_BUSES   PCI addresses of the machine's GPUs, as 0000:10:00.0,0000:20:00.0
 *   ONE_GPU_INDEX   which of them this process is
 *   ONE_GPU_SM      compute capability, as 80
 *   ONE_GPU_NICS    names of network interfaces, each at an address of its own in 127/8
 *   ONE_GPU_SUMS    1: the GPU says that it can multicast. Graphs of NVLS are searched for; none may run
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, MOST = 64 };

/* ---- what the variables say ---- */

static int given(const char *name, char parts[MOST][64]) {
  const char *text = getenv(name);
  char copy[4096];
  int count = 0;
  if (text == NULL) return 0;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *rest = copy, *part; count < MOST && (part = strsep(&rest, ",")) != NULL;)
    if (*part) snprintf(parts[count++], 64, "%s", part);
  return count;
}

static int buses(char parts[MOST][64]) { return given("ONE_GPU_BUSES", parts); }

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

static const char *mine(void) {
  static char parts[MOST][64];
  int index = number("ONE_GPU_INDEX", 0);
  return index < buses(parts) ? parts[index] : "0000:00:00.0";
}

/* ---- the driver ---- */

typedef struct {
  int type, handle_types;
  struct {
    int type, id;
  } location;
  void *security;
  unsigned char flags[8];
} Allocation;

typedef struct {
  unsigned devices;
  size_t bytes;
  unsigned long long handle_types, flags;
} Multicast;

static void *(*real_dlsym)(void *, const char *);
static int (*real_attribute)(int *, int, int);
static int (*real_uuid)(unsigned char *, int);
static int (*real_pci_bus_id)(char *, int, int);
static int (*real_create)(unsigned long long *, size_t, const Allocation *, unsigned long long);
static int (*real_proc_v1)(const char *, void **, int, uint64_t);
static int (*real_proc_v2)(const char *, void **, int, uint64_t, int *);

/* CUDA's runtime compares what the driver says of the device with what it knows, when it begins. So all is
 * told as it is until NCCL asks for its own functions of the driver, of which the runtime has no use. */
static int is_begun;

static int pci_bus_id(char *text, int length, int device) {
  if (!is_begun) return real_pci_bus_id(text, length, device);
  snprintf(text, length, "%s", mine());
  return SUCCESS;
}

static int by_pci_bus_id(int *device, const char *text) {
  if (strcasecmp(text, mine()) != 0) return 101; /* no such device */
  *device = 0;
  return SUCCESS;
}

static int uuid(unsigned char *bytes, int device) {
  if (!is_begun) return real_uuid(bytes, device);
  const char *host = getenv("NCCL_HOSTID");
  memset(bytes, 0, 16);
  snprintf((char *)bytes, 16, "%d %s", number("ONE_GPU_INDEX", 0), host ? host : "");
  return SUCCESS;
}

static int attribute(int *value, int which, int device) {
  int code = real_attribute(value, which, device), sm = number("ONE_GPU_SM", 0);
  if (!is_begun || code != SUCCESS) return code;
  if (which == 75 && sm) *value = sm / 10;
  if (which == 76 && sm) *value = sm % 10;
  if (which == 132) *value = number("ONE_GPU_SUMS", 0);
  return SUCCESS;
}

/* Plain memory stands for what switches would sum. */
static int multicast_create(unsigned long long *handle, const Multicast *wanted) {
  Allocation plain = {1, (int)wanted->handle_types, {1, 0}, NULL, {0}};
  return real_create(handle, wanted->bytes, &plain, 0);
}
static int multicast_granularity(size_t *bytes, const Multicast *wanted, int option) {
  (void)wanted, (void)option;
  *bytes = 2 << 20;
  return SUCCESS;
}
static int multicast_nothing(void) { return SUCCESS; }

static int proc_v1(const char *, void **, int, uint64_t);
static int proc_v2(const char *, void **, int, uint64_t, int *);

/* ---- NVML ---- */

static int nvml_count(unsigned *count) {
  char parts[MOST][64];
  *count = buses(parts);
  return SUCCESS;
}
static int nvml_by_index(unsigned index, void **handle) {
  *handle = (void *)(uintptr_t)(index + 1);
  return SUCCESS;
}
static int nvml_by_bus(const char *text, void **handle) {
  char parts[MOST][64];
  int count = buses(parts);
  const char *tail = strchr(text, ':'); /* NVML states domains in eight digits */
  for (int each = 0; each < count; each++)
    if (tail && strcasecmp(strchr(parts[each], ':'), tail) == 0) return nvml_by_index(each, handle);
  return NOT_FOUND;
}
static int nvml_index(void *handle, unsigned *index) {
  *index = (unsigned)(uintptr_t)handle - 1;
  return SUCCESS;
}
static int nvml_capability(void *handle, int *major, int *minor) {
  (void)handle;
  *major = number("ONE_GPU_SM", 0) / 10;
  *minor = number("ONE_GPU_SM", 0) % 10;
  return SUCCESS;
}
static int nvml_p2p(void *one, void *other, int which, int *status) {
  (void)one, (void)other, (void)which;
  *status = 0;
  return SUCCESS;
}
static const char *nvml_error(int code) {
  (void)code;
  return "one_gpu.c";
}
static int nvml_done(void) { return SUCCESS; }
static int nvml_unsupported(void) { return NOT_SUPPORTED; }

/* ---- by name ---- */

typedef struct {
  const char *name;
  void *ours;
  void **real;
} Entry;

static const Entry ENTRIES[] = {
    {"cuGetProcAddress", proc_v1, (void **)&real_proc_v1},
    {"cuGetProcAddress_v2", proc_v2, (void **)&real_proc_v2},
    {"cuDeviceGetPCIBusId", pci_bus_id, (void **)&real_pci_bus_id},
    {"cuDeviceGetByPCIBusId", by_pci_bus_id, NULL},
    {"cuDeviceGetUuid", uuid, (void **)&real_uuid},
    {"cuDeviceGetUuid_v2", uuid, (void **)&real_uuid},
    {"cuDeviceGetAttribute", attribute, (void **)&real_attribute},
    {"cuMulticastCreate", multicast_create, NULL},
    {"cuMulticastGetGranularity", multicast_granularity, NULL},
    {"cuMulticastAddDevice", multicast_nothing, NULL},
    {"cuMulticastBindMem", multicast_nothing, NULL},
    {"cuMulticastBindAddr", multicast_nothing, NULL},
    {"cuMulticastUnbind", multicast_nothing, NULL},
    {"nvmlDeviceGetCount", nvml_count, NULL},
    {"nvmlDeviceGetCount_v2", nvml_count, NULL},
    {"nvmlDeviceGetHandleByIndex", nvml_by_index, NULL},
    {"nvmlDeviceGetHandleByPciBusId", nvml_by_bus, NULL},
    {"nvmlDeviceGetIndex", nvml_index, NULL},
    {"nvmlDeviceGetCudaComputeCapability", nvml_capability, NULL},
    {"nvmlDeviceGetP2PStatus", nvml_p2p, NULL},
    {"nvmlErrorString", nvml_error, NULL},
    {"nvmlInit", nvml_done, NULL},
    {"nvmlInit_v2", nvml_done, NULL},
    {"nvmlShutdown", nvml_done, NULL},
};

/* Ours for a name, once the real one is known; or what was found. */
static void *chosen(const char *name, void *found) {
  if (strcmp(name, "cuMulticastCreate") == 0) is_begun = 1;
  for (size_t each = 0; each < sizeof ENTRIES / sizeof *ENTRIES; each++) {
    const Entry *entry = ENTRIES + each;
    if (strcmp(entry->name, name) != 0) continue;
    if (entry->real && found && *entry->real == NULL) *entry->real = found;
    return found || strncmp(name, "nvml", 4) == 0 ? entry->ours : found;
  }
  if (strcmp(name, "cuMemCreate") == 0 && found) *(void **)&real_create = found;
  return strncmp(name, "nvml", 4) == 0 ? nvml_unsupported : found;
}

static int proc_v1(const char *name, void **found, int version, uint64_t flags) {
  int code = real_proc_v1(name, found, version, flags);
  if (code == SUCCESS) *found = chosen(name, *found);
  return code;
}
static int proc_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
  int code = real_proc_v2(name, found, version, flags, status);
  if (code != SUCCESS || *found == NULL) return code;
  /* By this name comes the second version, whose shape is that of this function. */
  *found = strcmp(name, "cuGetProcAddress") == 0 && version >= 12000 ? chosen("cuGetProcAddress_v2", *found)
                                                                     : chosen(name, *found);
  return code;
}

void *dlsym(void *handle, const char *name) {
  if (real_dlsym == NULL) {
    void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (found == NULL) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    *(void **)&real_dlsym = found;
  }
  if (getenv("ONE_GPU_BUSES") == NULL) return real_dlsym(handle, name);
  if (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvml", 4) != 0) return real_dlsym(handle, name);
  return chosen(name, real_dlsym(handle, name));
}

/* ---- network interfaces ---- */

typedef struct {
  struct ifaddrs entry;
  char name[64];
  struct sockaddr_in address, mask;
} Interface;

int getifaddrs(struct ifaddrs **first) {
  static char parts[MOST][64];
  int count = given("ONE_GPU_NICS", parts);
  if (count == 0) {
    count = 1;
    strcpy(parts[0], "lo");
  }
  Interface *made = calloc(count, sizeof *made);
  if (made == NULL) return -1;
  for (int each = 0; each < count; each++) {
    Interface *one = made + each;
    strcpy(one->name, parts[each]);
    one->address.sin_family = one->mask.sin_family = AF_INET;
    one->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + each);
    one->mask.sin_addr.s_addr = htonl(0xff000000);
    one->entry.ifa_name = one->name;
    one->entry.ifa_flags = IFF_UP | IFF_RUNNING;
    one->entry.ifa_addr = (struct sockaddr *)&one->address;
    one->entry.ifa_netmask = (struct sockaddr *)&one->mask;
    if (each + 1 < count) one->entry.ifa_next = &made[each + 1].entry;
  }
  *first = &made->entry;
  return 0;
}

void freeifaddrs(struct ifaddrs *first) { free(first); }

/* A network of NCCL (version 10 of its API) whose NICs are those that STILL_NET names, and which carries nothing.
 *
 * STILL_NET is as mlx5_0=200000,mlx5_1=200000: names and Mbit/s. Connections are made, memory is registered,
 * GPUs' memory too, and nothing arrives: for collectives that are planned and never run.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32, HOST = 1, CUDA = 2, HOST_DEVICE = 0 };

typedef struct {
  char *name, *pci_path;
  uint64_t guid;
  int pointers, register_once, force_flush, mbps, port;
  float latency;
  int most_connections, most_receives, device_type, device_version;
  struct {
    int count, devices[4];
  } parts;
  size_t most_bytes, most_collective_bytes;
} Properties;

static char names[MOST][64];
static int speeds[MOST], count = -1;

static int start(void *log, void *profile) {
  (void)log, (void)profile;
  char copy[2048];
  const char *text = getenv("STILL_NET");
  snprintf(copy, sizeof copy, "%s", text ? text : "");
  count = 0;
  for (char *rest = copy, *part; count < MOST && (part = strsep(&rest, ",")) != NULL;)
    if (sscanf(part, "%63[^=]=%d", names[count], &speeds[count]) == 2) count++;
  return 0;
}
static int devices(int *found) {
  *found = count;
  return 0;
}
static int properties(int device, Properties *made) {
  *made = (Properties){.name = names[device], .guid = device + 1, .pointers = HOST | CUDA, .mbps = speeds[device],
                       .port = 1, .most_connections = 131072, .most_receives = 1, .device_type = HOST_DEVICE,
                       .parts = {1, {device}}, .most_bytes = 1 << 30, .most_collective_bytes = 1 << 30};
  return 0;
}
static int open_listen(int device, void *handle, void **made) {
  (void)device, (void)handle;
  *made = malloc(1);
  return 0;
}
static int open_send(int device, void *config, void *handle, void **made, void **on_device) {
  (void)config, (void)on_device;
  return open_listen(device, handle, made);
}
static int open_receive(void *listening, void **made, void **on_device) {
  (void)on_device;
  return open_listen(0, listening, made);
}
static int take(void *at, void *data, size_t bytes, int type, void **made) {
  (void)at, (void)data, (void)bytes, (void)type;
  *made = malloc(1);
  return 0;
}
static int give(void *at, void *memory) {
  (void)at;
  free(memory);
  return 0;
}
static int send(void *at, void *data, size_t bytes, int tag, void *memory, void *mark, void **request) {
  (void)at, (void)data, (void)bytes, (void)tag, (void)memory, (void)mark;
  *request = NULL;
  return 0;
}
static int receive(void *at, int n, void **data, size_t *bytes, int *tags, void **memory, void **marks,
                   void **request) {
  (void)at, (void)n, (void)data, (void)bytes, (void)tags, (void)memory, (void)marks;
  *request = NULL;
  return 0;
}
static int flush(void *at, int n, void **data, int *bytes, void **memory, void **request) {
  (void)at, (void)n, (void)data, (void)bytes, (void)memory;
  *request = NULL;
  return 0;
}
static int test(void *request, int *is_done, int *bytes) {
  (void)request, (void)bytes;
  *is_done = 0;
  return 0;
}
static int close_one(void *made) {
  free(made);
  return 0;
}

const struct {
  const char *name;
  int (*init)(void *, void *);
  int (*devices)(int *);
  int (*properties)(int, Properties *);
  int (*listen)(int, void *, void **);
  int (*connect)(int, void *, void *, void **, void **);
  int (*accept)(void *, void **, void **);
  int (*take)(void *, void *, size_t, int, void **);
  void *take_dma_buf;
  int (*give)(void *, void *);
  int (*send)(void *, void *, size_t, int, void *, void *, void **);
  int (*receive)(void *, int, void **, size_t *, int *, void **, void **, void **);
  int (*flush)(void *, int, void **, int *, void **, void **);
  int (*test)(void *, int *, int *);
  int (*close_send)(void *), (*close_receive)(void *), (*close_listen)(void *);
  void *device_memory, *received, *virtual_devices;
} ncclNetPlugin_v10 = {"still_net", start, devices, properties, open_listen, open_send, open_receive, take, NULL, give,
                       send, receive, flush, test, close_one, close_one, close_one, NULL, NULL, NULL};

/* What this machine has: memory, and how fast it is read. */
#ifndef QKV_BASE_MACHINE_H
#define QKV_BASE_MACHINE_H

/* Bytes that can be had without swapping: what the kernel calls available, or what a container is
 * given; 0: unknown. *total: all there are. */
double qkv_machine_memory(double *total);

/* Bytes of memory that this process has in use now, and at most had until now; 0: unknown. */
double qkv_process_memory(double *most);

/* Bytes per second that all threads together read from memory; 0 when there is no memory to measure
 * with. */
double qkv_memory_bandwidth(double seconds);

#endif

# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast a kernel that only reads gets through the memory of the first CUDA device, in bytes per
second. Standard library only: the kernel is PTX, which the driver compiles.

    python3 tests/bench/read_rate.py
"""
import ctypes
import statistics
import sys

SIZE = 8 << 30          # bytes: more than any cache holds
BLOCKS, THREADS, UNROLLED = 132 * 16, 512, 4
RUNS = 9
# Each thread reads 16 bytes at a time, 4 of them under way. It writes only a value that cannot come up, so
# that the reads are not removed.
PTX = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry read_all(.param .u64 data, .param .u64 step, .param .u32 n)
{
    .reg .pred %p<3>;
    .reg .b32 %r<32>;
    .reg .b64 %d<12>;
    ld.param.u64 %d1, [data];
    ld.param.u64 %d2, [step];
    ld.param.u32 %r1, [n];
    cvta.to.global.u64 %d1, %d1;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    mul.wide.u32 %d3, %r5, 16;
    add.u64 %d4, %d1, %d3;
    mov.u32 %r6, 0;
next:
    add.u64 %d5, %d4, %d2;
    add.u64 %d6, %d5, %d2;
    add.u64 %d7, %d6, %d2;
    ld.global.nc.v4.u32 {%r10, %r11, %r12, %r13}, [%d4];
    ld.global.nc.v4.u32 {%r14, %r15, %r16, %r17}, [%d5];
    ld.global.nc.v4.u32 {%r18, %r19, %r20, %r21}, [%d6];
    ld.global.nc.v4.u32 {%r22, %r23, %r24, %r25}, [%d7];
    add.u64 %d4, %d7, %d2;
    or.b32 %r6, %r6, %r10;
    or.b32 %r6, %r6, %r14;
    or.b32 %r6, %r6, %r18;
    or.b32 %r6, %r6, %r22;
    or.b32 %r6, %r6, %r13;
    or.b32 %r6, %r6, %r17;
    or.b32 %r6, %r6, %r21;
    or.b32 %r6, %r6, %r25;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra next;
    setp.ne.u32 %p2, %r6, 1;
    @%p2 ret;
    st.global.u32 [%d1], %r6;
    ret;
}
"""


class Driver:
    """Calls of the driver library, each of which has to succeed."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __call__(self, name, *args):
        code = getattr(self.library, name)(*args)
        if code:
            raise OSError(f"{name} failed with {code}")


def time_reads(cuda, kernel, data):
    """Seconds of each run but the first."""
    out, steps, step = [], SIZE // (BLOCKS * THREADS * 16 * UNROLLED), BLOCKS * THREADS * 16
    values = ctypes.c_uint64(data.value), ctypes.c_uint64(step), ctypes.c_uint32(steps)
    args = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in values))
    events = ctypes.c_void_p(), ctypes.c_void_p()
    for event in events:
        cuda("cuEventCreate", ctypes.byref(event), 0)
    for _ in range(RUNS + 1):
        cuda("cuEventRecord", events[0], None)
        cuda("cuLaunchKernel", kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, None, args, None)
        cuda("cuEventRecord", events[1], None)
        cuda("cuEventSynchronize", events[1])
        ms = ctypes.c_float()
        cuda("cuEventElapsedTime", ctypes.byref(ms), *events)
        out.append(ms.value * 1e-3)
    return out[1:], steps * step * UNROLLED


def read_rate():
    """Bytes per second; OSError if there is no device, or no memory for it."""
    cuda, device, context = Driver(), ctypes.c_int(), ctypes.c_void_p()
    module, kernel, data = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    cuda("cuInit", 0)
    cuda("cuDeviceGet", ctypes.byref(device), 0)
    cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        cuda("cuCtxSetCurrent", context)
        cuda("cuModuleLoadData", ctypes.byref(module), PTX)
        cuda("cuModuleGetFunction", ctypes.byref(kernel), module, b"read_all")
        cuda("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(SIZE))
        cuda("cuMemsetD32_v2", data, 0x5a5a5a5a, ctypes.c_size_t(SIZE // 4))
        seconds, size = time_reads(cuda, kernel, data)
        cuda("cuMemFree_v2", data)
    finally:
        cuda("cuDevicePrimaryCtxRelease_v2", device)
    return size / statistics.median(seconds)


if __name__ == "__main__":
    try:
        print(f"{read_rate() / 1e12:.3f} TB/s")
    except OSError as e:
        sys.exit(f"read_rate.py: {e}")

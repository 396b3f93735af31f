#!/usr/bin/env python3
"""What the kernels of a CUDA unit need of a GPU, as ptxas says it: registers, shared memory, stack; and
how many of their instructions load and store 16 bytes of memory at once, as the machine code says it.

    resources.py measure NVCC UNIT OUTPUT DEPFILE OPTION...   compiles the unit and writes the table
    resources.py compare TABLE GOLDEN                         holds it against the one that is kept

Shared memory is what a kernel declares; what a launch adds is not in it. Where the unit is compiled
without contraction, the table says that nothing was fused. A spill is always wrong. The rest depends on
the compiler: with another one than the kept table's, the comparison is skipped (exit code 77). PACELINE_UPDATE_GOLDEN=1 rewrites the kept table.
"""

import os
import pathlib
import re
import struct
import subprocess
import sys

ARCHITECTURES = ("sm_80", "sm_90")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def short_name(mangled):
    name = run(["c++filt", mangled]).strip()
    name = re.sub(r"paceline::runtime::(cuda::)?(detail::)?", "", name)
    found = re.match(r"void (run_\w+)<(.*)>\(", name)
    return f"{found[1]}<{found[2].strip()}>" if found else name


# Instructions of Volta and later have 128 bits: the operation is in the lowest twelve, and the size of
# what a load or a store moves in three from bit 73 on (6: 16 bytes). The numbers are those of Mesa's
# compiler (src/nouveau/compiler/nak, sm70_encode.rs), for any address and for one of global memory.
LOADS = {0x380, 0x381, 0x980, 0x981}
STORES = {0x385, 0x386, 0x985, 0x986}


def wide_accesses(cubin):
    """By a kernel's mangled name, the loads and the stores of 16 bytes in its code."""
    data = pathlib.Path(cubin).read_bytes()
    (table,) = struct.unpack_from("<Q", data, 40)  # of an ELF file of 64 bits
    size, count, names = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    found = {}
    for name_at, _, _, _, first, length in sections:
        start = sections[names][4] + name_at
        name = data[start:data.index(b"\0", start)].decode()
        if not name.startswith(".text."):
            continue
        loads = stores = 0
        for low, high in struct.iter_unpack("<QQ", data[first:first + length]):
            if high >> 9 & 7 == 6:
                loads += low & 0xfff in LOADS
                stores += low & 0xfff in STORES
        found[name.removeprefix(".text.")] = loads, stores
    return found


def kernels(text, accesses):
    """Yields name, registers, shared bytes, stack bytes, spilled bytes and wide accesses of each kernel."""
    for part in text.split("Compiling entry function '")[1:]:
        def number(pattern):
            found = re.search(pattern, part)
            return int(found[1]) if found else 0
        spilled = number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads")
        mangled = part.split("'")[0]
        yield (short_name(mangled), number(r"Used (\d+) registers"), number(r"(\d+) bytes smem"),
               number(r"(\d+) bytes stack frame"), spilled, *accesses[mangled])


def measure(nvcc, unit, output, depfile, *options):
    version = re.search(r"V([\d.]+)", run([nvcc, "--version"]))[1]
    command = [nvcc, *options, unit]
    lines = [f"# {pathlib.Path(unit).name}, nvcc {version}. "
             "PACELINE_UPDATE_GOLDEN=1 ctest -R cuda.resources rewrites it.",
             f"{'':6} registers shared stack spilled loads16 stores16 kernel"]
    for architecture in ARCHITECTURES:
        text = run([*command, f"-arch={architecture}", "-cubin", "--resource-usage",
                    "-o", output + ".cubin", "-MD", "-MF", depfile, "-MT", output])
        for name, registers, shared, stack, spilled, loads, stores in sorted(
                kernels(text, wide_accesses(output + ".cubin"))):
            lines.append(f"{architecture:6} {registers:9} {shared:6} {stack:5} {spilled:7} {loads:7} {stores:8} {name}")
    if "--fmad=false" in options:
        ptx = pathlib.Path(output + ".ptx")
        run([*command, f"-arch={ARCHITECTURES[-1]}", "-ptx", "-o", str(ptx)])
        fused = len(re.findall(r"\bfma\.rn\.f32\b", ptx.read_text(encoding="utf-8")))
        lines.append(f"fused products and sums in FP32: {fused}")
        ptx.unlink()
    pathlib.Path(output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    pathlib.Path(output + ".cubin").unlink()


def compare(table, golden):
    text = pathlib.Path(table).read_text(encoding="utf-8")
    spilling = [line for line in text.splitlines()
                if re.match(r"sm_\d+ ", line) and line.split()[4] != "0"]
    if spilling:
        sys.exit("kernels spill registers:\n" + "\n".join(spilling))
    kept = pathlib.Path(golden)
    if os.environ.get("PACELINE_UPDATE_GOLDEN"):
        kept.write_text(text, encoding="utf-8")
    if not kept.exists():
        print(f"nothing spills; there is no table {kept}")
        return
    expected = kept.read_text(encoding="utf-8")
    if text.splitlines()[0] != expected.splitlines()[0]:
        print(f"skipped: the table is of another compiler\n  {expected.splitlines()[0]}\n"
              f"  {text.splitlines()[0]}")
        sys.exit(77)
    if text != expected:
        sys.exit(f"kernels need other resources than {kept} says; PACELINE_UPDATE_GOLDEN=1 rewrites "
                 f"it:\n{text}")
    print(text)


if __name__ == "__main__":
    {"measure": measure, "compare": compare}[sys.argv[1]](*sys.argv[2:])

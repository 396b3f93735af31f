"""The command line of mpirun: one daemon on each host, over TCP on the lab's network only."""
import pathlib

from labnet.hosts import DIRECTORY, NETWORK, address


def mpirun(options):
    ranks = options.hosts * options.ranks_per_host
    hostfile = DIRECTORY / "hosts"
    hostfile.write_text("".join(f"{address(number)} slots={options.ranks_per_host}\n"
                                for number in range(1, options.hosts + 1)))
    settings = {
        "plm": "rsh", "plm_rsh_agent": DIRECTORY / "lab-rsh", "plm_rsh_no_tree_spawn": 1,
        "orte_tmpdir_base": DIRECTORY,
        "oob_tcp_if_include": NETWORK, "btl_tcp_if_include": NETWORK,
        "pml": "ob1", "btl": "self,tcp",
        # There are more ranks than cores, so a rank that waits must let others run.
        "mpi_yield_when_idle": 1,
    }
    if not options.rendezvous:
        # Open MPI's rendezvous, above 64 KiB, makes bulk exchanges partly half duplex.
        for name in ("btl_tcp_eager_limit", "btl_tcp_rndv_eager_limit", "btl_tcp_max_send_size"):
            settings[name] = 32 << 20
    command = ["mpirun", "--allow-run-as-root", "--hostfile", hostfile, "-np", ranks,
               "--map-by", "node", "--bind-to", "none"]
    for name, value in settings.items():
        command += ["--mca", name, value]
    for name, value in options.mca or []:
        command += ["--mca", name, value]
    yields = pathlib.Path(options.switch).with_name("libpaceline-lab-yield.so")
    if yields.exists() and not options.spin:
        command += ["-x", f"LD_PRELOAD={yields}"]
    for name in options.export or []:
        command += ["-x", name]
    return [str(part) for part in command]

"""docs/examples/train.slurm as sbatch runs it: Debian's slurmctld, munged and two slurmd of the test's own, each node a
network namespace with a host name, joined by a bridge. It is skipped where Slurm is not there (slurmctld, slurmd, slurm-client and munge, which
setup.sh does not install) or where namespaces are not allowed.
"""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from paceline import EXAMPLES, HANG_S, PACELINE, CommandTest, run

TOOLS = ("slurmctld", "slurmd", "sbatch", "srun", "sinfo", "munged", "ip", "unshare")
MISSING = [tool for tool in TOOLS if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
MISSING += ["libsodium in this build"] if ", without libsodium" in run("--version").stdout else []
NAMESPACES = ("unshare", "--mount", "--net", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child")
NODES = {"node0": "10.9.8.1", "node1": "10.9.8.2"}  # addresses on a bridge: names are not looked up where there is no network but loopback

LINES = "\n".join(f"NodeName={name} NodeAddr={address} CPUs=2 RealMemory=100 State=UNKNOWN" for name, address in NODES.items())
CONFIGURATION = f"""ClusterName=test
SlurmctldHost=node0({NODES['node0']})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=FOLDER/munge.socket
CredType=cred/munge
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool-%n
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd-%n.pid
SlurmctldLogFile=FOLDER/slurmctld.log
SlurmdLogFile=FOLDER/slurmd-%n.log
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MpiDefault=none
SlurmctldTimeout=600
SlurmdTimeout=600
MessageTimeout=60
{LINES}
PartitionName=all Nodes={",".join(NODES)} Default=YES MaxTime=INFINITE State=UP
"""

# $1: the folder; $2: nodes; $3: tasks of each; what follows: the script of the first job, and its words.
# node0 is the namespace that this starts in, where the controller is, too; node1 is a child with a network and a host name of its own.
JOB = f"""set -e
PATH=$PATH:/usr/sbin:/sbin
cd "$1"
ip link set lo up
ip link add lan type bridge
ip addr add {NODES["node0"]}/24 dev lan
ip link set lan up
hostname node0
echo '127.0.0.1 localhost' > hosts
{"; ".join(f"echo {address} {name} >> hosts" for name, address in NODES.items())}
mount --bind hosts /etc/hosts
munged --force --key-file="$1/munge.key" --socket="$1/munge.socket" --pid-file="$1/munge.pid" --log-file="$1/munge.log" --seed-file="$1/munge.seed"
export SLURM_CONF="$1/slurm.conf"
slurmctld -c -f slurm.conf
slurmd -N node0 -f slurm.conf
mkfifo wired
unshare --net --uts --mount sh -c 'read line < wired
  hostname node1
  mount --bind pmix-node1 pmix
  ip link set lo up
  ip addr add {NODES["node1"]}/24 dev port1
  ip link set port1 up
  exec slurmd -D -N node1 -f slurm.conf' &
ip link add wire1 type veth peer name port1
ip link set wire1 master lan up
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
ip link set port1 netns $!
echo > wired
tries=0
until [ "$(sinfo -h -N -o '%N %t' 2>/dev/null | grep -c idle)" = {len(NODES)} ]; do
  tries=$((tries + 1)); [ $tries -lt 300 ] || {{ cat slurmctld.log slurmd-*.log >&2; exit 3; }}
  sleep 0.5
done
nodes=$2 tasks=$3
shift 3
sbatch --wait --output=job.out --nodes=$nodes --ntasks-per-node=$tasks "$@"
export PACELINE_RENDEZVOUS_SECRET=$(head -c 32 /dev/urandom | base64)  # which Slurm takes to the nodes
exec sbatch --wait --output=tcp.out --nodes=$nodes --ntasks-per-node=$tasks --wrap 'exec srun --kill-on-bad-exit=1 paceline train \\
  --rendezvous "$(hostname):29500" --model cnn-small --data synthetic --epochs 1 --stop-after 3 --threads 1 --strategy fused-ring'
"""


@unittest.skipIf(MISSING, f"not there: {', '.join(MISSING)}")
@unittest.skipUnless(not MISSING and subprocess.run([*NAMESPACES, "true"], stderr=subprocess.DEVNULL).returncode == 0, "namespaces are not allowed here")
class Slurm(CommandTest):
    def run_jobs(self, nodes, tasks):
        """Runs docs/examples/train.slurm on so many nodes with so many tasks each, and then the job whose ranks meet by TCP."""
        (self.folder / "state").mkdir()
        for name in NODES:
            (self.folder / f"spool-{name}").mkdir()
        for name in ("pmix", "pmix-node1"):  # node1 has the second in place of the first
            (self.folder / name).mkdir()
        (self.folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={self.folder}/pmix\n")
        self.folder.chmod(0o755)  # munged and its clients ask for that
        (self.folder / "munge.key").write_bytes(os.urandom(128))
        (self.folder / "munge.key").chmod(0o600)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.replace("FOLDER", str(self.folder)))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "OMPI", "PMIX", "RANK", "WORLD"))}
        environment.update(PATH=f"{pathlib.Path(PACELINE).parent}:{environment['PATH']}", PACELINE_CALIBRATION_TIME="1 s")
        done = subprocess.run([*NAMESPACES, "sh", "-c", JOB, "job", str(self.folder), str(nodes), str(tasks), str(EXAMPLES / "train.slurm"), "cluster.yaml", "cnn-small",
                               "synthetic", "8", "--epochs", "1", "--stop-after", "3", "--threads", "1"],
                              capture_output=True, text=True, env=environment, timeout=HANG_S)
        said = {name: path.read_text() for name in ("job", "tcp") if (path := self.folder / f"{name}.out").exists()}
        logs = "".join(path.read_text() for path in self.folder.glob("slurmd-*.log"))
        self.assertEqual(done.returncode, 0, f"{done.stderr}{said}{logs}")
        profile, plan = (json.loads((self.folder / name).read_text()) for name in ("profile.json", "plan.json"))
        metrics = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        ranks = nodes * tasks
        self.assertEqual((profile["schema"], plan["schema"], plan["ranks"]), ("paceline.profile/1", "paceline.plan/1", ranks))
        self.assertTrue(any(curve["ranks"] == ranks for curve in profile["curves"]))
        self.assertIn(f"{ranks} ranks on {nodes} nodes, open-mpi, node0", said["job"])
        self.assertIn("layers as calibrated in profile calibrated", said["job"])
        self.assertRegex(said["job"], rf"\ncnn-small on synthetic: {ranks} ranks \(open-mpi\)[^\n]*\n{plan['strategy']}: ")
        self.assertEqual((metrics[0]["ranks"], metrics[0]["strategy"]), (ranks, plan["strategy"]))
        self.assertEqual([line["iteration"] for line in metrics if line["event"] == "iteration"], [0, 1, 2])
        self.assertRegex(said["tcp"], rf"^cnn-small on synthetic: {ranks} ranks \(tcp\)[^\n]*\nfused-ring: ")
        self.assertIn("stopped after 3 iterations", said["tcp"])

    def test_on_one_node(self):
        shutil.copy(EXAMPLES / "two-cores.yaml", self.folder / "cluster.yaml")
        self.run_jobs(1, 2)

    def test_on_two_nodes(self):
        one = (EXAMPLES / "two-cores.yaml").read_text()
        two = one.replace("\nnodes: 1\nranks_per_node: 2\n", "\nnodes: 2\nranks_per_node: 1\n")
        self.assertNotEqual(one, two)
        (self.folder / "cluster.yaml").write_text(two)
        self.run_jobs(2, 1)


if __name__ == "__main__":
    unittest.main()

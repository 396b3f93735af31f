"""docs/examples/train.slurm as sbatch runs it: Debian's slurmctld, slurmd and munged of the test's own, on a
network of its own. It is skipped where Slurm is not there (slurmctld, slurmd, slurm-client and munge, which
setup.sh does not install) or where namespaces are not allowed.
"""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from paceline import EXAMPLES, HANG_S, PACELINE, CommandTest

TOOLS = ("slurmctld", "slurmd", "sbatch", "srun", "sinfo", "munged", "ip", "unshare")
MISSING = [tool for tool in TOOLS if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
NAMESPACES = ("unshare", "--mount", "--net", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child")
ADDRESS = "10.9.8.1"  # of a veth, for names are not looked up where there is no network but loopback

CONFIGURATION = f"""ClusterName=test
SlurmctldHost=node0({ADDRESS})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=FOLDER/munge.socket
CredType=cred/munge
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd.pid
SlurmctldLogFile=FOLDER/slurmctld.log
SlurmdLogFile=FOLDER/slurmd.log
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
NodeName=node0 NodeAddr={ADDRESS} CPUs=2 RealMemory=100 State=UNKNOWN
PartitionName=all Nodes=node0 Default=YES MaxTime=INFINITE State=UP
"""

JOB = f"""set -e
PATH=$PATH:/usr/sbin:/sbin
cd "$1"
ip link set lo up
ip link add v0 type veth peer name v1
ip addr add {ADDRESS}/24 dev v0
ip link set v0 up
ip link set v1 up
hostname node0
printf '127.0.0.1 localhost\\n{ADDRESS} node0\\n' > hosts
mount --bind hosts /etc/hosts
munged --force --key-file="$1/munge.key" --socket="$1/munge.socket" --pid-file="$1/munge.pid" --log-file="$1/munge.log" --seed-file="$1/munge.seed"
export SLURM_CONF="$1/slurm.conf"
slurmctld -c -f slurm.conf
slurmd -N node0 -f slurm.conf
tries=0
until sinfo -h 2>/dev/null | grep -q idle; do
  tries=$((tries + 1)); [ $tries -lt 300 ] || {{ cat slurmctld.log slurmd.log >&2; exit 3; }}
  sleep 0.5
done
shift
exec sbatch --wait --nodes=1 --ntasks-per-node=2 --output=job.out "$@"
"""


@unittest.skipIf(MISSING, f"not there: {', '.join(MISSING)}")
@unittest.skipUnless(not MISSING and subprocess.run([*NAMESPACES, "true"], stderr=subprocess.DEVNULL).returncode == 0, "namespaces are not allowed here")
class Slurm(CommandTest):
    def test_a_job_calibrates_predicts_and_trains_by_the_plan(self):
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)  # munged and its clients ask for that
        (self.folder / "munge.key").write_bytes(os.urandom(128))
        (self.folder / "munge.key").chmod(0o600)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.replace("FOLDER", str(self.folder)))
        shutil.copy(EXAMPLES / "two-cores.yaml", self.folder)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "OMPI", "PMIX", "RANK", "WORLD"))}
        environment.update(PATH=f"{pathlib.Path(PACELINE).parent}:{environment['PATH']}", PACELINE_CALIBRATION_TIME="1 s")
        done = subprocess.run([*NAMESPACES, "sh", "-c", JOB, "job", str(self.folder), str(EXAMPLES / "train.slurm"), "two-cores.yaml", "cnn-small", "synthetic", "8",
                               "--epochs", "1", "--stop-after", "3", "--threads", "1"], capture_output=True, text=True, env=environment, timeout=HANG_S)
        out = self.folder / "job.out"
        said = out.read_text() if out.exists() else ""
        self.assertEqual(done.returncode, 0, done.stderr + said)
        profile, plan = (json.loads((self.folder / name).read_text()) for name in ("profile.json", "plan.json"))
        self.assertEqual((profile["schema"], plan["schema"], plan["ranks"]), ("paceline.profile/1", "paceline.plan/1", 2))
        self.assertTrue(any(curve["ranks"] == 2 for curve in profile["curves"]))
        self.assertIn("layers as calibrated in profile calibrated", said)
        self.assertRegex(said, rf"\ncnn-small on synthetic: 2 ranks \(tcp\)[^\n]*\n{plan['strategy']}: ")
        metrics = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual((metrics[0]["ranks"], metrics[0]["strategy"]), (2, plan["strategy"]))
        self.assertEqual([line["iteration"] for line in metrics if line["event"] == "iteration"], [0, 1, 2])


if __name__ == "__main__":
    unittest.main()

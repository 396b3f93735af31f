"""Where an installation puts its files: PACELINE_PREFIX is one that the build has made."""

import os
import pathlib
import subprocess
import unittest

PREFIX = pathlib.Path(os.environ["PACELINE_PREFIX"])
LIB = PREFIX / os.environ["PACELINE_LIBDIR"]


def is_built(variable):
    return os.environ[variable][:1].isdigit()


class Files(unittest.TestCase):
    def all_there(self, folder, *names):
        for name in names:
            self.assertTrue((folder / name).is_file(), f"{folder / name} is not there")

    def test_libraries_headers_and_cmake(self):
        self.all_there(PREFIX / "bin", "paceline")
        self.all_there(LIB, "libpaceline_models.a", "libpaceline_simulator.a", "libpaceline_runtime.a")
        self.all_there(PREFIX / "include/paceline", "models/base/units.h", "models/collective/verify.h", "runtime/training/trainer.h")
        self.all_there(LIB / "cmake/paceline", "pacelineConfig.cmake", "pacelineConfigVersion.cmake", "pacelineTargets.cmake")

    def test_modules_lie_where_the_command_looks(self):
        modules = ["paceline-simgrid.so", "libnccl-tuner-paceline.so", "python/paceline_ddp.py"]
        modules += ["paceline-cuda.so"] * is_built("PACELINE_CUDA") + ["paceline-cudnn.so"] * is_built("PACELINE_CUDNN")
        self.all_there(PREFIX / "lib/paceline", *modules)
        compile((PREFIX / "lib/paceline/python/paceline_ddp.py").read_text(), "paceline_ddp.py", "exec")

    def test_manual_pages_completions_and_documents(self):
        pages = {path.name for path in (PREFIX / "share/man/man1").iterdir()}
        self.assertLessEqual({"paceline.1", "paceline-predict.1", "paceline-show-network.1", "paceline-doctor.1"}, pages)
        self.all_there(PREFIX / "share", "bash-completion/completions/paceline", "zsh/site-functions/_paceline", "fish/vendor_completions.d/paceline.fish",
                       "paceline/schemas/prediction-1.json", "paceline/schemas/common.json")
        self.all_there(PREFIX / "share/doc/paceline", "LICENSE", "NOTICE", "examples/sweep.yaml")

    def test_doctor_finds_the_modules(self):
        text = subprocess.run([PREFIX / "bin/paceline", "doctor"], capture_output=True, text=True, timeout=600).stdout
        self.assertRegex(text, r"\npaceline-simgrid.so +found")


if __name__ == "__main__":
    unittest.main()

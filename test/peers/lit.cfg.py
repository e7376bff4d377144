"""lit's configuration of `make test-peers`, a suite of its own: it takes .venv-peers (test/peers/setup) and a build, `--param build=FOLDER`."""
import os

import lit.formats

source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = os.path.abspath(lit_config.params.get("build", os.path.join(source, "build")))
config.name = "peers"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".py"]
config.excludes = ["lit.cfg.py"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "test-peers")
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), config.environment["PATH"]])
config.environment["PYTHONPATH"] = os.path.join(source, "test", "support")
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["HF_HUB_OFFLINE"] = "1"
# -P: no package is hidden by a test of its name.
config.substitutions += [("%peers", os.path.join(source, ".venv-peers", "bin", "python") + " -P -W ignore"), ("%heed_src", source)]

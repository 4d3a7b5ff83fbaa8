"""Build and run a Dockerfile of `examples/docker` without Docker: line by line, in a Debian root.

    python scripts/try_dockerfile.py examples/docker/python.Dockerfile FOLDER

FOLDER becomes the image; a root that `debootstrap` has made there before is taken. The base image is not fetched:
Debian of the same name with its own Python stands for it. Needs root, debootstrap, and the wheel in `dist/`.
"""

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Of Debian's Python: what it and its pip are called, and that pip may write beside the distribution's packages.
_PYTHON = {
    "PIP_BREAK_SYSTEM_PACKAGES": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "DEBIAN_FRONTEND": "noninteractive",
}


def instructions(file):
    """The instructions of a Dockerfile, each with its text."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE))
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


class Image:
    """A folder in which instructions are carried out."""

    def __init__(self, root):
        self.root, self.user, self.folder, self.environment = root, "root", "/", dict(_PYTHON)
        self.command = []

    def base(self, name):
        found = re.fullmatch(r"python:3[.\d]*-slim-(\w+)", name)
        if found is None:
            sys.exit(f"only python:3...-slim-... can be stood for by Debian, not {name}")
        if not (self.root / "usr" / "bin").is_dir():
            packages = "--include=ca-certificates,python3,python3-pip,adduser"
            subprocess.run(
                ["debootstrap", "--variant=minbase", packages, found[1], str(self.root)], check=True
            )
        # As Docker does: a container knows its own name.
        (self.root / "etc" / "hosts").write_text(f"127.0.0.1 localhost {platform.node()}\n")

    def trust(self, certificates):
        """Let pip trust whom it trusts on this machine, whose index may be behind a proxy."""
        shutil.copy(certificates, self.root / "etc" / "ssl" / "of-this-machine.pem")
        self.environment["PIP_CERT"] = "/etc/ssl/of-this-machine.pem"

    def run(self, command):
        words = [f"{name}={text}" for name, text in self.environment.items()]
        script = f"cd {shlex.quote(self.folder)} && {command}"
        known = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *words]
        chroot = ["chroot", f"--userspec={self.user}", str(self.root), "env", "-i", *known]
        subprocess.run([*chroot, "sh", "-c", script], check=True)

    def copy(self, text):
        *sources, target = text.split()
        into = (
            self.root / self.folder.lstrip("/") / target.lstrip("/")
            if target[0] != "/"
            else self.root / target[1:]
        )
        for source in sources:
            for file in sorted(ROOT.glob(source)) or sys.exit(f"there is no {source}: run make dist"):
                shutil.copy(file, into / file.name if target.endswith("/") else into)

    def follow(self, name, text):
        """Carry out one instruction."""
        print(f"{name} {' '.join(text.split())}", flush=True)
        if name == "FROM":
            self.base(text)
        elif name == "RUN":
            self.run(text)
        elif name == "COPY":
            self.copy(text)
        elif name == "USER":
            self.user = text
        elif name == "WORKDIR":
            self.folder = text
        elif name == "ENV":
            self.environment.update(word.split("=", 1) for word in shlex.split(text))
        elif name == "CMD":
            self.command = json.loads(text)
        else:
            sys.exit(f"{name} is not known")


def main():
    file, folder = (Path(word).resolve() for word in sys.argv[1:3])
    image = Image(folder)
    proc = folder / "proc"  # which Java wants
    try:
        for name, text in instructions(file):
            image.follow(name, text)
            if name == "FROM":
                subprocess.run(["mount", "-t", "proc", "proc", str(proc)], check=True)
                if "PIP_CERT" in os.environ:
                    image.trust(os.environ["PIP_CERT"])
        for _ in range(2):  # a second run of the job has the same outcome
            image.run(shlex.join(image.command))
    finally:
        subprocess.run(["umount", "--lazy", str(proc)], check=False)


if __name__ == "__main__":
    main()

"""From a file to a deployment: checked, planned, with its secrets and its folder."""

import os
from pathlib import Path

from ottla.pipelines.lint import check_file
from ottla.pipelines.plan import make_plan
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.state_folder import StateFolder
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.versions import with_version

BOOTSTRAP_VARIABLE = "OTTLA_BOOTSTRAP"
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


def deploy(path: Path, *, bootstrap: str | None, state_dir: Path, version: str | None = None) -> Deployment:
    """`bootstrap` wins over the file's, which wins over the environment's."""
    checked = with_version(check_file(path), version)
    secrets = Secrets(checked.base_dir)
    brokers = bootstrap or checked.spec.bootstrap or os.environ.get(BOOTSTRAP_VARIABLE)
    return Deployment(
        plan=make_plan(checked, version),
        secrets=secrets,
        bootstrap=brokers or DEFAULT_BOOTSTRAP,
        folder=StateFolder(state_dir, checked.name).path,
        version=version,
    )


def deploy_active(path: Path, *, bootstrap: str | None, state_dir: Path) -> Deployment:
    """With the version that was last switched to."""
    version = StateFolder(state_dir, check_file(path).name).active_version
    return deploy(path, bootstrap=bootstrap, state_dir=state_dir, version=version)

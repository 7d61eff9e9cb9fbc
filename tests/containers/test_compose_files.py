"""docker-compose.yml, its images, and what podman-compose reads behind it, fit each other."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
USERS = {"Dockerfile": 3307, "containers/mariadb/Dockerfile": 3306}
USERS |= {"containers/prometheus/Dockerfile": 3308}


class Reader(yaml.SafeLoader):
    """Knows the tag by which a file takes back what one before it says."""


Reader.add_constructor("!reset", lambda *_: None)


def services(name):
    return yaml.load((ROOT / name).read_text(), Reader)["services"]


def test_all_wait_for_the_secrets_to_be_made():
    waiting = {name: one.get("depends_on") for name, one in services("docker-compose.yml").items()}
    assert waiting.pop("secrets") is None
    assert list(waiting.values()) == [
        {"secrets": {"condition": "service_completed_successfully"}}
    ] * len(waiting)


def test_podman_compose_does_not_see_whom_they_wait_for():
    """It has podman require that the one waited for runs at each start, and that one has ended."""
    all_but_one = services("docker-compose.yml").keys() - {"secrets"}
    taken_back = {name: {"depends_on": None} for name in all_but_one}
    assert services("containers/podman.yml") == taken_back
    script = (ROOT / "scripts" / "containers").read_text()
    assert 'podman-compose" -f docker-compose.yml -f containers/podman.yml)' in script


def test_no_volume_begins_as_another_one_does():
    """Asked for a volume that is not there, podman tells of one whose name begins so."""
    names = yaml.load((ROOT / "docker-compose.yml").read_text(), Reader)["volumes"]
    assert not [(one, two) for one in names for two in names if one != two and two.startswith(one)]


def test_folders_of_the_checkout_are_labelled_for_containers():
    for one in services("docker-compose.yml").values():
        for mount in one["volumes"]:
            if isinstance(mount, str):  # podman-compose knows no z in these
                assert not mount.startswith((".", "/")), mount
            else:
                assert (mount["type"], mount["read_only"]) == ("bind", True)
                assert mount["bind"] == {"selinux": "z"}
                assert (ROOT / mount["source"]).is_dir()


@pytest.mark.parametrize(("path", "user"), USERS.items())
def test_an_image_says_its_user_by_number(path, user):
    text = (ROOT / path).read_text()
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == [f"{user}:{user}"]

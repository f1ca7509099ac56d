"""Reads a config drive as the programs of systems read it, and prints JSON. By cloud-init of Debian's package, and cloudbase-init.

  image-kinds.py cloud-init FOLDER MAC    FOLDER/seed/config_drive has the files of the drive
  image-kinds.py cloudbase-init DISK BSDTAR   DISK is the file of a whole disk
  image-kinds.py yaml                     whether cloud-init reads the #cloud-config of the standard input
"""
import json
import subprocess
import sys
import types

SECTOR = 512


def cloud_init(folder, mac):
    from cloudinit import helpers, net
    from cloudinit.sources import DataSourceConfigDrive as config_drive

    # The interfaces of the machine, not of this host.
    net.get_interfaces_by_mac = lambda *_: {mac: "eth0"}
    source = config_drive.DataSourceConfigDrive({}, None, helpers.Paths({"cloud_dir": folder, "run_dir": folder}))
    found = source.get_data()
    name = source.get_hostname()
    return {
        "found": found,
        "labels": config_drive.LABEL_TYPES,
        "types": config_drive.FS_TYPES,
        "id": source.get_instance_id(),
        "hostname": getattr(name, "hostname", name),
        "user_data": source.get_userdata_raw().decode() if isinstance(source.get_userdata_raw(), bytes) else source.get_userdata_raw(),
        "keys": source.get_public_ssh_keys(),
        "network": source.network_config,
    }


class Region:
    """A partition, as cloudbase-init's class of Windows shows it."""

    fixed = True

    def __init__(self, path, start, size):
        self.path, self.start, self.size, self.at = path, start, size, 0

    def __enter__(self):
        self.file = open(self.path, "rb")
        return self

    def __exit__(self, *_):
        self.file.close()

    def seek(self, offset):
        self.at = offset - offset % SECTOR
        return self.at

    def read(self, size, skip=0):
        self.file.seek(self.start + self.at + skip)
        return self.file.read(size)


class Disk(Region):
    def __init__(self, path):
        super().__init__(path, 0, 0)

    def partitions(self):
        table = json.loads(subprocess.check_output(["sfdisk", "--json", self.path]))["partitiontable"]
        return [Region(self.path, part["start"] * SECTOR, part["size"] * SECTOR) for part in table["partitions"]]


class System:
    """What cloudbase-init asks of Windows."""

    def __init__(self, path):
        self.path = path

    def get_cdrom_drives(self):
        return []

    def get_volumes(self):
        return []

    def get_physical_disks(self):
        return [self.path]

    def execute_process(self, words, shell):
        done = subprocess.run(words, capture_output=True)
        return done.stdout, done.stderr, done.returncode


def cloudbase_init(path, bsdtar):
    # These two modules need Windows: the rest is the program's own.
    for name, members in (("disk", {"Disk": Disk}), ("vfat", {"is_vfat_drive": lambda *_: False})):
        module = types.ModuleType("cloudbaseinit.utils.windows." + name)
        module.__dict__.update(members)
        sys.modules[module.__name__] = module
    from cloudbaseinit import conf
    from cloudbaseinit.metadata.services import configdrive
    from cloudbaseinit.metadata.services.osconfigdrive import factory, windows

    windows.osutils_factory.get_os_utils = lambda: System(path)
    factory.get_config_drive_manager = windows.WindowsConfigDriveManager
    conf.CONF.set_override("bsdtar_path", bsdtar)
    service = configdrive.ConfigDriveService()
    found = service.load()
    # It joins names by backslashes, as on Windows.
    read = service._get_data
    service._get_data = lambda name: read(name.replace("\\", "/"))
    links, networks, dns = service.get_network_details_v2() if found else ([], [], [])
    answer = {
        "found": found,
        "id": service.get_instance_id(),
        "hostname": service.get_host_name(),
        "password": service.get_admin_password(),
        "user_data": service.get_user_data().decode(),
        "keys": service.get_public_keys(),
        "links": [link.mac_address for link in links],
        "addresses": [network.address_cidr for network in networks],
    }
    service.cleanup()
    return answer


def reads_yaml():
    from cloudinit import safeyaml
    import yaml

    try:
        safeyaml.load(sys.stdin.read())
    except yaml.YAMLError:
        return False
    return True


VERBS = {"cloud-init": cloud_init, "cloudbase-init": cloudbase_init, "yaml": reads_yaml}
print(json.dumps(VERBS[sys.argv[1]](*sys.argv[2:])))

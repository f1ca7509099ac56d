"""ironic-python-agent's own checks and plans of software RAID, for each case on standard input; one line of JSON a case."""
import json
import sys
from unittest import mock

from ironic_python_agent import config

config.populate_config()  # before the others are imported, which read it
from ironic_python_agent import errors
from ironic_python_agent import hardware
from ironic_python_agent import raid_utils
from ironic_python_agent import utils


def device(disk):
    return hardware.BlockDevice(name=disk['name'], model=None, size=disk['size'], rotational=False, serial=disk['serial'])


def plan(case):
    disks = [device(disk) for disk in case['disks']]
    manager = hardware.GenericHardwareManager()
    manager.list_block_devices = lambda *args, **kwargs: disks
    config, node = {'logical_disks': case['asked']}, case['node']
    try:
        manager.validate_configuration(config, node)
        devices, logical = raid_utils.get_block_devices_for_raid(disks, config['logical_disks'])
    except errors.SoftwareRAIDError as error:
        return {'error': str(error)}
    label, mode = utils.get_partition_table_type_from_specs(node), utils.get_node_boot_mode(node)
    with mock.patch.object(utils, 'execute', lambda *words, **more: ('2048\n', '')):
        starts = {name: raid_utils.calculate_raid_start(mode, label, name) for name in devices}
    ordered = [disk for disk in logical if disk['size_gb'] != 'MAX'] + [disk for disk in logical if disk['size_gb'] == 'MAX']
    partitions = {name: [] for name in devices}
    for disk in ordered:
        size = -1 if disk['size_gb'] == 'MAX' else int(disk['size_gb'])
        for name in disk['block_devices']:
            start, end, starts[name] = raid_utils.calc_raid_partition_sectors(size, starts[name])
            partitions[name].append([start, end])
    return {'label': label, 'mode': mode, 'volumes': [disk['block_devices'] for disk in ordered], 'partitions': partitions}


for line in sys.stdin:
    print(json.dumps(plan(json.loads(line))))

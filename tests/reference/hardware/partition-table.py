"""ironic-python-agent's own partition tables for partition images, for each case on standard input; one line of JSON a case."""
import json
import sys
from unittest import mock

from ironic_python_agent import config

config.populate_config()  # before the others are imported, which read it
from ironic_python_agent import disk_partitioner
from ironic_python_agent import disk_utils
from ironic_python_agent import utils


def plan(case):
    node = case['node']
    mode, label = utils.get_node_boot_mode(node), utils.get_partition_table_type_from_specs(node)
    words = []
    with mock.patch.object(disk_partitioner.DiskPartitioner, '_exec', lambda self, *given: words.extend(given)), \
            mock.patch.object(disk_utils, 'wait_for_disk_to_become_available', lambda device: None), \
            mock.patch.object(disk_utils, 'trigger_device_rescan', lambda device: None):
        disk_utils.make_partitions('/dev/sda', case['root'], case['swap'], case['ephemeral'], case['configdrive'], 'u', commit=True,
                                   boot_option='local', boot_mode=mode, disk_label=label, cpu_arch='x86_64')
    return {'mode': mode, 'parted': words}


for line in sys.stdin:
    print(json.dumps(plan(json.loads(line))))

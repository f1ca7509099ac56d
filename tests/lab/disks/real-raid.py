"""In place of ironic-python-agent's main program, in its ramdisk: what its own functions find of software RAID, delete and create.

The kernel's command line has `raid=` with base64 of a JSON list: `"read"`, `{"delete": node}` and `{"create": node}`. Each answer is a
line on the console: `real: ` and JSON.
"""
import base64
import json
import re
import subprocess
import traceback

from oslo_config import cfg

from ironic_python_agent import config

config.populate_config()  # before the others are imported, which read it
from ironic_python_agent import errors
from ironic_python_agent import hardware
from ironic_python_agent import raid_utils
from ironic_python_agent import utils


def read():
    found = {}
    for array in hardware.list_all_block_devices(block_type=['raid', 'md'], ignore_raid=False, ignore_empty=False):
        if not hardware.get_component_devices(array.name):
            continue
        found[raid_utils.get_volume_name_of_raid_device(array.name)] = {
            'components': sorted(hardware.get_component_devices(array.name)),
            'holders': sorted(set(hardware.get_holder_disks(array.name))),
            'uuid': hardware._get_md_uuid(array.name),
            'is_md': hardware.is_md_device(array.name),
        }
    return {'arrays': found, 'scanned': len(hardware.md_get_raid_devices()), 'esp': bool(raid_utils.find_esp_raid())}


def answer(asked):
    try:
        if asked == 'read':
            return read()
        if 'delete' in asked:
            return {'deleted': hardware.dispatch_to_managers('delete_configuration', asked['delete'], [])}
        return {'created': hardware.dispatch_to_managers('create_configuration', asked['create'], [])}
    except errors.RESTError as error:
        return {'error': str(error)}
    except Exception:
        return {'error': traceback.format_exc()}


def run():
    cfg.CONF(args=[])
    words = open('/proc/cmdline').read()
    # The ramdisk took the instance's config drive for its own.
    subprocess.run(['/bin/umount', '/mnt/config'])
    hardware.get_managers()
    for asked in json.loads(base64.b64decode(re.search(r'raid=(\S+)', words).group(1))):
        text = json.dumps(answer(asked))
        utils.execute('udevadm', 'settle', check_exit_code=False)
        with open('/dev/console', 'w') as console:
            console.write('\nreal: %s\n' % text)
    subprocess.run(['/bin/busybox', 'sync'])
    subprocess.run(['/bin/busybox', 'poweroff', '-f'])

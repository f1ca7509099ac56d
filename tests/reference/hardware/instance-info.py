"""Ironic's own reading of instance_info for partition images, for each case on standard input; one line of JSON a case."""
import json
import sys
from types import SimpleNamespace

from ironic.common import exception
from ironic.drivers.modules import deploy_utils


def read(case):
    node = SimpleNamespace(uuid='u', instance_info=case['info'], driver_internal_info=case['internal'], get_interface=lambda kind: 'direct')
    try:
        found = deploy_utils.parse_instance_info(node)
    except exception.IronicException as error:
        return {'error': str(error)}
    except TypeError as error:
        return {'crash': repr(error)}
    return {'read': {key: found[key] for key in ('root_mb', 'swap_mb', 'ephemeral_mb', 'ephemeral_format', 'preserve_ephemeral')}}


for line in sys.stdin:
    print(json.dumps(read(json.loads(line))))

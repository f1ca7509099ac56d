"""Ironic's own choice of drives for RAID volumes, for each case of a list on standard input; one line of JSON a case."""
import copy
import json
import sys
from types import SimpleNamespace

import sushy

from ironic.common import exception
from ironic.drivers.modules.redfish import raid

PROTOCOLS = {'SAS': sushy.PROTOCOL_TYPE_SAS, 'SATA': sushy.PROTOCOL_TYPE_SATA}


class Drive(SimpleNamespace):
    __hash__ = object.__hash__
    __eq__ = object.__eq__


def plan(case):
    drives = [
        Drive(identity=d['id'], media_type=d['mediaType'], protocol=PROTOCOLS[d['protocol']], capacity_bytes=d['bytes'])
        for d in case['drives']
    ]
    storages = {drive: SimpleNamespace(identity=d['controller']) for drive, d in zip(drives, case['drives'])}
    disks = copy.deepcopy(case['asked'])
    for number, disk in enumerate(disks):
        disk['volume_name'] = str(number)
    try:
        raid.convert_drive_units(disks, SimpleNamespace(uuid='u'))
        found = raid._find_configuration(disks, drives, storages)
    except exception.IronicException as error:
        return {'error': str(error)}
    except (ValueError, IndexError) as error:
        return {'crash': repr(error)}
    return {
        'volumes': [
            {'name': v['volume_name'], 'drives': [d.identity for d in drives if d.identity in v['physical_disks']], 'bytes': v['size_bytes']}
            for v in found
        ]
    }


for line in sys.stdin:
    print(json.dumps(plan(json.loads(line))))

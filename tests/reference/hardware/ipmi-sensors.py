"""What the real Ironic's IPMI driver makes of the sensors of the BMC whose driver_info is on standard input."""
import json
import sys
from types import SimpleNamespace

from ironic.conf import CONF
from ironic.drivers.modules import ipmitool

CONF([], project='ironic', default_config_files=[])
node = SimpleNamespace(uuid='1be26c0b-03f2-4d2e-ae87-c02d7f33c123', driver_info=json.load(sys.stdin), driver_internal_info={})
print(json.dumps(ipmitool.IPMIManagement().get_sensors_data(SimpleNamespace(node=node))))

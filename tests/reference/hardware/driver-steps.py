"""Prints the steps of the real Ironic's interfaces, as JSON: {"KIND NAME": [{"kind", "step", ...}]}. Reads such keys as a list of JSON."""
import json
import sys

import stevedore

names = json.load(sys.stdin)
found = {}
for name in names:
    kind, interface = name.split(' ')
    manager = stevedore.DriverManager('ironic.hardware.interfaces.' + kind, interface, invoke_on_load=True)
    loaded = manager.driver
    steps = []
    for of in ('clean', 'deploy', 'verify', 'service'):
        for step in getattr(loaded, of + '_steps'):
            steps.append({'kind': of, **{key: step.get(key) for key in ('step', 'priority', 'argsinfo', 'requires_ramdisk', 'abortable')}})
    found[name] = steps
json.dump(found, sys.stdout)

"""What ironic-python-agent offers: one line of JSON with its steps, commands, kernel parameters and collectors."""
import importlib.metadata
import json
import os
import re

from ironic_python_agent import config  # registers its options, which the others read
from ironic_python_agent import hardware
from ironic_python_agent import inspector
from ironic_python_agent.extensions import base
from ironic_python_agent.hardware_managers import container
from ironic_python_agent.hardware_managers import mlnx

MANAGERS = (hardware.GenericHardwareManager, mlnx.MellanoxDeviceHardwareManager, container.ContainerHardwareManager)


def steps(manager, kind):
    return getattr(manager, 'get_%s_steps' % kind)({}, [])


def commands():
    found = {}
    for point in importlib.metadata.entry_points(group='ironic_python_agent.extensions'):
        extension = point.load()
        for name in dir(extension):
            method = getattr(extension, name)
            marker = getattr(method, 'command_name', None)
            if marker:
                found['%s.%s' % (point.name, marker)] = bool(getattr(method, 'is_async', False))
    # The decorators keep no name on some versions: they are read from the sources then.
    folder = os.path.dirname(base.__file__)
    for file in os.listdir(folder):
        if not file.endswith('.py') or file in ('__init__.py', 'base.py'):
            continue
        with open(os.path.join(folder, file)) as source:
            for kind, name in re.findall(r"@base\.(async|sync)_command\('(\w+)'", source.read()):
                found['%s.%s' % (file[:-3], name)] = kind == 'async'
    return found


def parameters():
    folder = os.path.dirname(config.__file__)
    found = set()
    for path, _, files in os.walk(folder):
        if '/tests' in path:
            continue
        for file in files:
            if file.endswith('.py'):
                with open(os.path.join(path, file)) as source:
                    found |= set(re.findall(r"get\(\s*'(ipa-[a-z0-9-]+)'", source.read()))
    return sorted(found)


managers = [manager() for manager in MANAGERS]
print(json.dumps({
    'steps': {kind: {type(manager).__name__: steps(manager, kind) for manager in managers} for kind in ('clean', 'deploy', 'service')},
    'versions': {version['name']: version['version'] for version in (manager.get_version() for manager in managers)},
    'support': {name: value for name, value in vars(hardware.HardwareSupport).items() if not name.startswith('_')},
    'commands': commands(),
    'parameters': parameters(),
    'collectors': sorted(point.name for point in importlib.metadata.entry_points(group='ironic_python_agent.inspector.collectors')),
}))

"""The API of ironic-python-agent, without its inventory, lookups and heartbeats: real-agent.py PORT TOKEN. It ends with its standard input.

Its hardware managers are its own, without a look at the hardware of this machine. Programs come from PATH.
"""
import sys

from ironic_python_agent import agent
from ironic_python_agent import config  # registers its options, which the others read
from ironic_python_agent import hardware
from ironic_python_agent.hardware_managers import container

config.populate_config()
managers = [hardware.GenericHardwareManager(), container.ContainerHardwareManager()]
hardware._global_managers = [
    {'name': type(manager).__name__, 'manager': manager, 'support': support} for manager, support in zip(managers, (1, 2))]
hardware.list_all_block_devices = lambda *words, **more: [hardware.BlockDevice('/dev/standin', 'stand-in', 10 ** 10, False)]

port, token = int(sys.argv[1]), sys.argv[2]
here = agent.Host(hostname='127.0.0.1', port=port)
served = agent.IronicPythonAgent(None, here, here, 1, 1, None, 1, 1, True, token)
served.api.start()
print('ready', flush=True)
sys.stdin.read()
served.api.stop()

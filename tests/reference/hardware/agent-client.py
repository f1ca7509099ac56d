"""The real Ironic's client of an agent: runs steps of cleaning in the agent, and prints what it reads, one line of JSON for each case.

A case has `node` (driver_info and driver_internal_info), `step`, and `ca`, the certificate of the agent in a file.
"""
import json
import sys
import time
import types

from ironic.common import exception
from ironic.conf import CONF
from ironic.drivers.modules import agent_client

CONF([], project='ironic')


class Node(types.SimpleNamespace):
    def as_dict(self, **more):
        return {key: value for key, value in vars(self).items()}


def run(case):
    node = Node(uuid=case['node']['uuid'], driver_info=case['node']['driver_info'], properties={}, instance_info={},
                driver_internal_info=case['node']['driver_internal_info'])
    client = agent_client.AgentClient()
    try:
        offered = client.get_clean_steps(node, [])['command_result']
        node.driver_internal_info['hardware_manager_version'] = offered['hardware_manager_version']
        begun = client.execute_clean_step(case['step'], node, [])
        for _ in range(600):
            last = client.get_commands_status(node)[-1]
            if last['command_status'] != 'RUNNING':
                break
            time.sleep(0.1)
    except exception.IronicException as error:
        return {'refused': str(error)}
    return {
        'steps': sorted(step['step'] for steps in offered['clean_steps'].values() for step in steps),
        'begun': begun['command_name'],
        'status': last['command_status'],
        'result': last['command_result'],
        'error': agent_client.get_command_error(last) if last['command_error'] else None,
    }


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)

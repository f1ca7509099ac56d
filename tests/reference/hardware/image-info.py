"""What Ironic 39 tells the agent of a partition image, for each case on standard input: image_info, or the error; one line of JSON a case."""
import inspect
import json
import sys
from types import SimpleNamespace

from ironic.common import exception
from ironic.conf import CONF
from ironic.drivers.modules import agent, agent_base, agent_client, deploy_utils

CONF(['--config-file', '/dev/null'], project='ironic')
sent = []
agent_base.execute_step = lambda task, step, kind, client=None: sent.append(step)
agent_client.get_client = lambda task: None
agent.configdrive_utils.get_configdrive_image = lambda node: None


class Node(SimpleNamespace):
    def save(self):
        pass

    def get_interface(self, kind):
        return 'direct'


def told(case):
    node = Node(uuid='u', name='n', instance_info=case['info'], properties=case['properties'], driver_info={},
                driver_internal_info={'is_whole_disk_image': False})
    task = SimpleNamespace(node=node, context=None, driver=SimpleNamespace(storage=SimpleNamespace(should_write_image=lambda task: True)),
                           shared=False)
    try:
        node.instance_info = deploy_utils.build_instance_info_for_deploy(task)
        inspect.unwrap(agent.AgentDeploy.write_image)(agent.AgentDeploy.__new__(agent.AgentDeploy), task)
    except exception.IronicException as error:
        return {'error': str(error)}
    return sent.pop()['args']['image_info']


for line in sys.stdin:
    print(json.dumps(told(json.loads(line))), flush=True)

"""What Ironic 39 makes of each reference on standard input (JSON a line): the agent's image_info, or the error; one line of JSON a case."""
import base64
import inspect
import json
import os
import sys
from types import SimpleNamespace

from ironic.common import exception
from ironic.conf import CONF
from ironic.drivers.modules import agent, agent_client, agent_base, deploy_utils

# requests prefers them to the option.
for name in ('REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'):
    os.environ.pop(name, None)
CONF(['--config-file', '/dev/null'], project='ironic')
SHOWN = ('id', 'urls', 'disk_format', 'checksum')


class Node(SimpleNamespace):
    def save(self):
        pass

    def get_interface(self, kind):
        return 'direct'


def read(case):
    CONF.set_override('verify_ca', case['ca'], 'oci')
    CONF.set_override('authentication_config', case.get('file'), 'oci')
    node = Node(uuid='u', name='n', instance_info={'image_source': case['source'], **case['instance_info']}, properties=case['properties'],
                driver_info={}, driver_internal_info={'is_whole_disk_image': True})
    task = SimpleNamespace(node=node, context=None, driver=SimpleNamespace(storage=SimpleNamespace(should_write_image=lambda task: True)),
                           shared=False)
    try:
        node.instance_info = deploy_utils.build_instance_info_for_deploy(task)
    except exception.IronicException as error:
        return {'error': str(error), 'kind': type(error).__name__}
    except Exception as error:
        return {'crash': repr(error)}
    sent = []
    agent_base.execute_step = lambda task, step, kind, client=None: sent.append(step)
    agent_client.get_client = lambda task: None
    agent.configdrive_utils.get_configdrive_image = lambda node: None
    try:
        inspect.unwrap(agent.AgentDeploy.write_image)(agent.AgentDeploy.__new__(agent.AgentDeploy), task)
    except Exception as error:
        return {'crash': repr(error)}
    info = sent[0]['args']['image_info']
    authorization = info.get('image_request_authorization')
    kind = base64.b64decode(authorization).decode().split(' ')[0] if authorization else None
    names = ('image_size', 'image_filename', 'image_media_type', 'image_compression_type', 'oci_image_manifest_url',
             'image_container_manifest_digest')
    return {'sent': {name: info.get(name) for name in SHOWN}, 'authorization': kind,
            'facts': {name: node.instance_info.get(name) for name in names}}


for line in sys.stdin:
    print(json.dumps(read(json.loads(line))), flush=True)

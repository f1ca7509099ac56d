"""ironic-python-agent's steps for network cards: for each case on standard input, the commands that it runs, or its error."""
import json
import os
import sys
from unittest import mock

from ironic_python_agent import config  # registers its options, which the others read
from ironic_python_agent import utils
from ironic_python_agent.hardware_managers.nvidia import nvidia_fw_update


def run(case):
    ran = []

    def execute(*words, **more):
        words = [str(word) for word in words]
        line = ' '.join(os.path.basename(word) if word.startswith('/tmp/') else word for word in words)
        ran.append(line)
        return case['answers'].get(line, ''), ''

    step = getattr(nvidia_fw_update, case['step'])
    with mock.patch.object(utils, 'execute', execute), \
            mock.patch.object(nvidia_fw_update.NvidiaNicFirmwareBinary, '_download_file_based_fw',
                              lambda self: open(self.dest_file_path, 'wb').write(open(self.parsed_url.path, 'rb').read())):
        try:
            step(case['argument'])
        except Exception as error:
            return {'error': type(error).__name__, 'ran': ran}
    return {'ran': ran}


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))))

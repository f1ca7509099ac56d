"""What the real agent downloads for each image_info on standard input (JSON a line); one line of JSON a case."""
import json
import os
import sys

from ironic_python_agent import config
from ironic_python_agent.extensions import standby

# requests prefers them to the option.
for name in ('REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'):
    os.environ.pop(name, None)
config.CONF([], project='ironic-python-agent')


def read(case):
    os.environ['REQUESTS_CA_BUNDLE'] = case['ca']
    config.CONF.set_override('image_download_connection_retries', 0)
    try:
        download = standby.ImageDownload(case['image_info'])
        size = sum(len(chunk) for chunk in download)
        download.verify_image('registry')
    except Exception as error:
        return {'error': str(error)}
    return {'bytes': size}


for line in sys.stdin:
    print(json.dumps(read(json.loads(line))), flush=True)

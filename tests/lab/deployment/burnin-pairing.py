"""The real agent finds its partner: burnin-pairing.py URL GROUP NAME SECONDS; one line of JSON with the partner and its own role."""
import json
import socket
import sys
from unittest import mock

from ironic_python_agent import config  # registers its options, which the others read
from ironic_python_agent import burnin

url, group, name, seconds = sys.argv[1:]
with mock.patch.object(socket, 'gethostname', lambda: name):
    partner, role = burnin._find_network_burnin_partner_and_role(url, group, int(seconds))
print(json.dumps({'host': partner, 'role': role}), flush=True)

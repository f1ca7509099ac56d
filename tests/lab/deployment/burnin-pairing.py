"""The real agent finds its partner: burnin-pairing.py URL GROUP NAME SECONDS; one line of JSON with the partner and its own role."""
import json
import socket
import sys
from unittest import mock

from ironic_python_agent import config  # registers its options, which the others read
from ironic_python_agent import burnin
from tooz.drivers import etcd3gw

# tooz 9.1 takes bytes as the name of a lock, and the agent gives a text: without this, the agent fails here.
get_lock = etcd3gw.Etcd3Driver.get_lock
etcd3gw.Etcd3Driver.get_lock = lambda self, name: get_lock(self, name.encode())

url, group, name, seconds = sys.argv[1:]
with mock.patch.object(socket, 'gethostname', lambda: name):
    partner, role = burnin._find_network_burnin_partner_and_role(url, group, int(seconds))
print(json.dumps({'host': partner, 'role': role}), flush=True)

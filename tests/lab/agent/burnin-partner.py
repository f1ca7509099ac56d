"""The real agent's network burn-in, with real fio: burnin-partner.py NODE, where NODE is JSON with driver_info."""
import json
import sys

from ironic_python_agent import config  # registers its options, which the others read
from ironic_python_agent import burnin

# Its reader tries again after half a minute.
burnin.NETWORK_READER_CYCLE = 2
burnin.fio_network(json.loads(sys.argv[1]))
print('done')

"""sushy manages a machine of a maker: URL, and "dell" for its Oem services. Prints what it saw as JSON."""
import json
import sys

import sushy

url, oem = sys.argv[1:]
system = sushy.Sushy(url, username='admin', password='password').get_system_collection().get_members()[0]
seen = {'manufacturer': system.manufacturer, 'managers': len(system.managers), 'nics': len(system.ethernet_interfaces.summary)}
if oem == 'dell':
    manager = system.managers[0]
    dell = manager.get_oem_extension('Dell')
    seen['ready'] = dell.lifecycle_service.is_idrac_ready()
    system.bios.set_attribute('Hyperthreading', 'Disabled')
    seen['jobs'] = [[job.job_state, job.job_type] for job in dell.job_collection.get_jobs()]
    dell.job_service.delete_jobs()
    seen['jobs left'] = dell.job_collection.get_unfinished_jobs()
    exported = dell.export_system_configuration().json()['SystemConfiguration']
    seen['exported'] = [component['FQDD'] for component in exported['Components']][:2]
    dell.set_virtual_boot_device(sushy.VIRTUAL_MEDIA_CD, manager=manager, system=system)
else:
    system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
system.refresh()
seen['boot'] = [system.boot.target.value, system.boot.enabled.value]
print(json.dumps(seen))

"""Drives a Redfish service with sushy, as Ironic does; prints what it saw as JSON. Arguments: URL, certificate, system's path."""
import json
import sys
import time

import sushy

url, certificate, path = sys.argv[1:4]
session = sushy.auth.SessionOrBasicAuth('admin', 'password')
root = sushy.Sushy(url, auth=session, verify=certificate)
system = root.get_system(path)
manager = system.managers[0]
chassis = system.chassis[0]
seen = {}


def wait(what, condition):
    for _ in range(200):
        if condition():
            return
        time.sleep(0.1)
    raise SystemExit('timed out: ' + what)


system.set_system_boot_options(target=sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_CONTINUOUS)
system.refresh(force=True)
seen['boot'] = [system.boot.target.value, system.boot.enabled.value]
system.reset_system(sushy.RESET_ON)
system.refresh(force=True)
seen['power'] = system.power_state.value

bios = system.bios
registry = bios.get_attribute_registry()
seen['bios attributes'] = len(registry.registry_entries.attributes)
bios.set_attribute('TurboMode', 'Disabled', apply_time=sushy.APPLY_TIME_ON_RESET)
bios.refresh(force=True)
seen['bios'] = [bios.attributes['TurboMode'], bios.pending_attributes['TurboMode']]
system.reset_system(sushy.RESET_FORCE_RESTART)
bios.refresh(force=True)
seen['bios'].append(bios.attributes['TurboMode'])
bios.reset_bios()

secure = system.secure_boot
secure.set_enabled(True)
secure.reset_keys(sushy.SECURE_BOOT_RESET_KEYS_DELETE_ALL)
secure.refresh(force=True)
seen['secure boot'] = [secure.enabled, secure.mode.value]

storage = system.storage.get_members()[0]
seen['drives'] = [drive.name for drive in storage.drives]
drive = storage.drives[0]
volumes = storage.volumes
volumes.create({'RAIDType': 'RAID0', 'Name': 'data', 'CapacityBytes': 2 ** 30, 'Links': {'Drives': [{'@odata.id': drive.path}]}},
               apply_time=sushy.APPLY_TIME_IMMEDIATE)
volumes.refresh(force=True)
volume = volumes.get_members()[0]
seen['volume'] = [volume.name, volume.raid_type.value, volume.capacity_bytes]
volume.delete(apply_time=sushy.APPLY_TIME_IMMEDIATE)
fresh = root.get_system(path).storage.get_members()[0].volumes
seen['volumes left'] = len(fresh.get_members())
drive.set_indicator_led(sushy.INDICATOR_LED_BLINKING)
drive.refresh(force=True)
seen['led'] = drive.indicator_led.value

image = sys.argv[4]
for owner in (system, manager):
    device = owner.virtual_media.get_members()[0]
    device.insert_media(image)
    device.refresh(force=True)
    seen.setdefault('media', []).append([device.inserted, device.image_name])
    device.eject_media()

monitor = root.get_update_service().simple_update(sys.argv[5])
wait('the update', lambda: not monitor.check_is_processing)
seen['update'] = monitor.get_task().task_state.value
manager.refresh(force=True)
seen['bmc'] = manager.firmware_version
seen['inventory'] = len(root.get_update_service().firmware_inventory.get_members())

seen['thermal'] = [[t.name, t.reading_celsius] for t in chassis.thermal.temperatures] + [[f.name, f.reading] for f in chassis.thermal.fans]
seen['supplies'] = [[p.name, p.last_power_output_watts] for p in chassis.power.power_supplies]
seen['adapters'] = [c.firmware_package_version for a in chassis.network_adapters.get_members() for c in a.controllers]
seen['macs'] = len(system.ethernet_interfaces.summary)
seen['processors'] = system.processors.summary.count
seen['simple storage'] = len(system.simple_storage.disks_sizes_bytes)

events = root.get_event_service()
subscription = events.subscriptions.create({'Destination': 'http://127.0.0.1:1/events', 'Protocol': 'Redfish', 'Context': 'mine'})
seen['subscription'] = subscription.context
subscription.delete()
system.reset_system(sushy.RESET_FORCE_OFF)
system = root.get_system(path)
seen['power'] = [seen['power'], system.power_state.value]
session.close()
print(json.dumps(seen))

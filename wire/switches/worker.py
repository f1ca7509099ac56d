"""Drives switches by networking-generic-switch, for the conductor that started this process.

The first line of standard input is {"switches": {NAME: configuration}}; the answer is {"ready": true}. Every further line is a change of a
port: {"id", "switch", "operation": "update" | "reset", "port", "native_vlan", "trunk_vlans", "default_vlan"}. Its answer is {"id"}, with
"error" when it failed. Each switch has a thread: changes that wait for it go to it together, in one session.
"""
import json
import os
import queue
import re
import sys
import threading

MOST_TOGETHER = 256


class Answers:
    def __init__(self, stream):
        self.stream, self.lock = stream, threading.Lock()

    def send(self, answer):
        with self.lock:
            self.stream.write(json.dumps(answer) + '\n')
            self.stream.flush()


class Switch:
    def __init__(self, name, configuration, answers):
        self.name, self.configuration, self.answers = name, configuration, answers
        self.device, self.changes = None, queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            changes = [self.changes.get()]
            while len(changes) < MOST_TOGETHER and not self.changes.empty():
                changes.append(self.changes.get())
            if len(changes) > 1 and self.attempt(changes) is None:
                for change in changes:
                    self.answers.send({'id': change['id']})
                continue
            # One of them failed, or there is only one: each by itself has an answer of its own.
            for change in changes:
                error = self.attempt([change])
                self.answers.send({'id': change['id']} if error is None else {'id': change['id'], 'error': error})

    def attempt(self, changes):
        """Makes the changes; the reason when one fails."""
        try:
            if self.device is None:
                from networking_generic_switch import devices
                self.device = devices.device_manager(dict(self.configuration), self.name)
            self.perform(changes)
            return None
        except Exception as error:
            return str(error) or type(error).__name__

    def perform(self, changes):
        from networking_generic_switch.devices import netmiko_devices
        device = self.device
        if len(changes) == 1 or not isinstance(device, netmiko_devices.NetmikoSwitch):
            for change in changes:
                self.change(change)
            return
        commands = []
        device.send_commands_to_device = lambda more: commands.extend(more) or ''
        try:
            for change in changes:
                self.change(change)
        finally:
            del device.send_commands_to_device
        device.check_output(device.send_commands_to_device(commands), 'plug port')

    def change(self, change):
        trunk_vlans = [vlan for vlan in change['trunk_vlans'] if vlan != change['native_vlan']]
        trunk = {'sub_ports': [{'segmentation_id': vlan} for vlan in trunk_vlans]} if trunk_vlans else None
        if trunk and not self.device.support_trunk_on_ports:
            raise ValueError('Switch %s does not support trunk ports' % self.name)
        call = self.device.plug_port_to_network if change['operation'] == 'update' else self.device.delete_port
        call(change['port'], change['native_vlan'], trunk_details=trunk, default_vlan=change['default_vlan'])


def main():
    # Libraries that print must not print into the answers.
    answers = Answers(os.fdopen(os.dup(1), 'w'))
    os.dup2(2, 1)
    from oslo_config import cfg
    # Imported now, so that what is missing is known before the first change.
    from networking_generic_switch.devices.netmiko_devices import ovs
    # The package does not look for errors of Open vSwitch.
    ovs.OvsLinux.ERROR_MSG_PATTERNS = (re.compile(r'^ovs-vsctl: .*', re.MULTILINE),)
    cfg.CONF([], project='networking-generic-switch', default_config_files=[], default_config_dirs=[])
    switches = {name: Switch(name, configuration, answers)
                for name, configuration in json.loads(sys.stdin.readline())['switches'].items()}
    answers.send({'ready': True})
    for line in sys.stdin:
        change = json.loads(line)
        switches[change['switch']].changes.put(change)


main()

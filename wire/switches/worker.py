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

MAX_TOGETHER = 256
# netmiko pauses after each text that it sends, and gives up after 15 seconds whatever the number of commands.
COMMANDS_IN_A_TEXT = 8
# ovs-vsctl waits after each call until the daemon has applied it, but takes several commands at once. Terminals have lines of 4096 bytes.
OVS, MAX_LINE = 'ovs-vsctl ', 3000
READ_TIMEOUT, READ_TIMEOUT_OF_A_COMMAND = 15, 0.2


class Answers:
    def __init__(self, stream):
        self.stream, self.lock = stream, threading.Lock()

    def send(self, answer):
        with self.lock:
            self.stream.write(json.dumps(answer) + '\n')
            self.stream.flush()


def ovs_lines(commands):
    lines = []
    for command in commands:
        more = ' -- ' + command[len(OVS):]
        if lines and len(lines[-1]) + len(more) <= MAX_LINE:
            lines[-1] += more
        else:
            lines.append(command)
    return lines


def texts_of(commands, end_of_line):
    if all(command.startswith(OVS) for command in commands):
        return ovs_lines(commands)
    return [end_of_line.join(commands[at:at + COMMANDS_IN_A_TEXT]) for at in range(0, len(commands), COMMANDS_IN_A_TEXT)]


def send_together(connection, commands):
    connection.enable()
    texts = texts_of(commands, connection.RETURN)
    timeout = READ_TIMEOUT + READ_TIMEOUT_OF_A_COMMAND * len(commands)
    return connection.send_config_set(config_commands=texts, cmd_verify=False, read_timeout=timeout)


class Switch:
    def __init__(self, name, configuration, answers):
        self.name, self.configuration, self.answers = name, configuration, answers
        self.device, self.changes = None, queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            changes = [self.changes.get()]
            while len(changes) < MAX_TOGETHER and not self.changes.empty():
                changes.append(self.changes.get())
            self.make(changes)

    def make(self, changes):
        """Makes the changes together. If that fails, each half by itself: so the one that is refused gets its reason, in few sessions."""
        error = self.attempt(changes)
        if error is not None and len(changes) > 1:
            middle = len(changes) // 2
            self.make(changes[:middle])
            self.make(changes[middle:])
            return
        for change in changes:
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
        if type(device).send_config_set is netmiko_devices.NetmikoSwitch.send_config_set:
            device.send_config_set = send_together
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
    # Libraries may print: their output must not get into the answers.
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

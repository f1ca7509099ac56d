/** The kickstart template of nodes that name none, where [anaconda]default_ks_template names no file. */

/** Repeated for a quarter of an hour while the API is away. @param status start, end or error */
const heartbeat = (status: string, message: string): string =>
  [
    `/usr/bin/curl {% if 'insecure_heartbeat' in ks_options %}--insecure {% endif %}--retry 10 --retry-connrefused -X POST`,
    `-H 'Content-Type: application/json' -H 'Accept: application/json' -H 'X-OpenStack-Ironic-API-Version: 1.72'`,
    `-d '{"callback_url": "", "agent_token": "{{ ks_options.agent_token }}", "agent_status": "${status}", "agent_status_message": "${message}"}'`,
    '{{ ks_options.heartbeat_url }}',
  ].join(' ');

export const DEFAULT_TEMPLATE = `text
cmdline
reboot
lang en_US
keyboard us
timezone UTC --utc
selinux --enforcing
firewall --disabled
firstboot --disabled
rootpw --lock

zerombr
clearpart --all --initlabel
bootloader --location=mbr
autopart

{% if 'is_source_a_path' in ks_options -%}
url --url {{ ks_options.liveimg_url }}

%packages --ignoremissing
%end
{% else -%}
liveimg --url {{ ks_options.liveimg_url }}
{% endif %}
%pre
${heartbeat('start', 'The installation starts.')}
%end

%onerror
${heartbeat('error', 'The installation failed. The console of the machine says why.')}
%end

{{ ks_options.config_drive }}

# The machine is powered off as soon as this heartbeat arrives.
%post
sync
${heartbeat('end', 'The installation has ended.')}
%end
`;

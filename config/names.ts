/** `section.name` as files and messages write it: `api.host_ip` → `[api]host_ip`. */
export const formatOptionName = (key: string): string => `[${key.replace('.', ']')}`;

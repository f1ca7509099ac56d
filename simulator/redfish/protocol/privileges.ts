/** The predefined roles and their privileges (DSP0266 §13.2). */
export const ROLES = {
  Administrator: ['Login', 'ConfigureManager', 'ConfigureUsers', 'ConfigureSelf', 'ConfigureComponents'],
  Operator: ['Login', 'ConfigureSelf', 'ConfigureComponents'],
  ReadOnly: ['Login', 'ConfigureSelf'],
} as const;
export type RoleName = keyof typeof ROLES;
export type Privilege = (typeof ROLES)['Administrator'][number];
export const hasPrivilege = (role: RoleName, privilege: Privilege): boolean => (ROLES[role] as readonly Privilege[]).includes(privilege);

/** The identity behind a request: what policies are evaluated for. */

/** Ids and names are Keystone's, or those of the file of roles; null where the caller has none. */
export interface Caller {
  readonly user: string | null;
  readonly userName: string | null;
  /** Id of the domain of the user. */
  readonly userDomain: string | null;
  /** The project of the token. Null: its scope is the system or a domain, or it has none. */
  readonly project: string | null;
  readonly projectName: string | null;
  readonly projectDomain: string | null;
  /** The domain that is the scope of the token. */
  readonly domain: string | null;
  /** In lower case, with the implied ones. */
  readonly roles: readonly string[];
  /** The scope of the token is the whole system. */
  readonly system: boolean;
  /** This caller may do everything. Only the policies of ALWAYS_EVALUATED (ineffectiveness.ts) apply. */
  readonly exempt: boolean;
  /** The name of the token of `bloomery token`. Absent: the caller used none. */
  readonly tokenName?: string;
  /** Absent: true, as in requests without X-Is-Admin-Project. */
  readonly isAdminProject?: boolean;
  /** The service that passes on the request, with a token of its own. */
  readonly service?: Pick<Caller, 'user' | 'userDomain' | 'project' | 'projectDomain' | 'roles'>;
}

/** A caller that did not authenticate. */
export const NOBODY: Caller = {
  user: null,
  userName: null,
  userDomain: null,
  project: null,
  projectName: null,
  projectDomain: null,
  domain: null,
  roles: [],
  system: false,
  exempt: false,
};

/** Links in responses. */
interface Link {
  readonly href: string;
  readonly rel: string;
  readonly type?: string;
}

/** The links of a resource: `self` under /v1 and `bookmark` without a version. */
export const linksTo = (base: string, path: string): readonly Link[] => [
  { href: `${base}/v1/${path}`, rel: 'self' },
  { href: `${base}/${path}`, rel: 'bookmark' },
];
/** The Location header of a created or changing resource. */
export const location = (base: string, path: string): Readonly<Record<string, string>> => ({ Location: `${base}/v1/${path}` });

// access-keys.ts: checks one set of credentials after reading, and compares two sets to detect a change.

export type Credentials = {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
  expiration?: Date
}

/** Pasted keys often end with a line break. Each becomes part of a header; a key contains no white space. */
export function asCredentials(
  accessKeyId: string,
  secretAccessKey: string,
  sessionToken: string | undefined,
): Credentials {
  const credentials = {
    accessKeyId: checked('access key id', accessKeyId),
    secretAccessKey: checked('secret access key', secretAccessKey),
  }
  const token = sessionToken?.trim()
  return token ? { ...credentials, sessionToken: checked('session token', token) } : credentials
}

const problems: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/^$/, 'is empty'],
  [/^["']|["']$/, 'is in quotes'],
  [/[\r\n]/, 'has a line break'],
  [/[^\x20-\x7e]/, 'is not printable ASCII'],
]

/** The error quotes nothing of the value. */
function checked(name: string, value: string): string {
  const text = value.trim()
  const found = problems.find(([pattern]) => pattern.test(text))
  if (found !== undefined) throw new Error(`the ${name} ${found[1]}`)
  // Not of a secret, which is in no header: some tools for tests use words.
  if (name !== 'secret access key' && text.includes(' ')) throw new Error(`the ${name} has a space`)
  return text
}

export function sameKeys(one: Credentials, other: Credentials): boolean {
  return (
    one.accessKeyId === other.accessKeyId &&
    one.secretAccessKey === other.secretAccessKey &&
    one.sessionToken === other.sessionToken
  )
}

// access-keys.ts: checks one set of credentials after reading, and compares two sets to detect a change.

export type Credentials = {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
  expiration?: Date
}

/** Pasted keys often end with a line break. A key itself contains no white space. */
export function asCredentials(
  accessKeyId: string,
  secretAccessKey: string,
  sessionToken: string | undefined,
): Credentials {
  const credentials = { accessKeyId: accessKeyId.trim(), secretAccessKey: secretAccessKey.trim() }
  if (!/^[\x21-\x7e]+$/.test(credentials.accessKeyId))
    throw new Error('the access key id is not printable ASCII')
  if (!/^[\x20-\x7e]+$/.test(credentials.secretAccessKey))
    throw new Error('the secret is not printable ASCII')
  const token = sessionToken?.trim()
  return token ? { ...credentials, sessionToken: token } : credentials
}

export function sameKeys(one: Credentials, other: Credentials): boolean {
  return (
    one.accessKeyId === other.accessKeyId &&
    one.secretAccessKey === other.secretAccessKey &&
    one.sessionToken === other.sessionToken
  )
}

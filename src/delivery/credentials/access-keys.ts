// access-keys.ts: one set of credentials: checked when it is read, compared when it may have changed.

export type Credentials = {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
  expiration?: Date
}

/** Keys have a line end when they were pasted or written by a shell; a key itself contains no space. */
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

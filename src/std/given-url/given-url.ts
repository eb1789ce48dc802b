// given-url.ts: reads a URL that a person wrote, in the config, the environment or a command. The only place
// that decodes user and password.

export type GivenUrl = { url: URL; user: string; password: string }

/** What is wrong with the URL follows the name of its option, and quotes nothing: it may hold a password. */
export function readUrl(text: string, protocols: readonly string[]): GivenUrl | string {
  const url = URL.parse(text)
  if (url === null || !protocols.includes(url.protocol) || url.hostname === '')
    return `must be a URL that begins with ${protocols.map((one) => `${one}//`).join(' or ')}`
  try {
    return { url, user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
  } catch {
    return 'has a "%" in its user or password that begins no escape: write it as %25'
  }
}

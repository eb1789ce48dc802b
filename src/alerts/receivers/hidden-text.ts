// hidden-text.ts: takes the secrets of a receiver out of texts that come from it. A hostile or chatty one
// repeats headers and passwords in its answers, and these go to the log, to /status and to terminals.

import { bounded, visible } from '../../std/quote.ts'
import { withoutLogins } from '../../std/shown-url.ts'

/** Shorter ones would replace usual words; they are no secrets either. */
const lengthMin = 4

/** Returns the function that hides them. A text becomes one line of at most `lengthMax` characters. */
export function createHiding(secrets: readonly string[]): (text: string, lengthMax?: number) => string {
  const forms = secrets
    .filter((secret) => secret.length >= lengthMin)
    .flatMap((secret) => [
      secret,
      encodeURIComponent(secret),
      Buffer.from(secret).toString('base64').replace(/=+$/, ''),
      Buffer.from(secret).toString('base64url'),
      Buffer.from(secret).toString('hex'),
      JSON.stringify(secret).slice(1, -1),
    ])
    .toSorted((a, b) => b.length - a.length)
  return (text, lengthMax = 300) => {
    let shown = text
    for (const form of forms) shown = shown.replaceAll(form, '***')
    return visible(bounded(withoutLogins(shown).replaceAll(/\s+/g, ' ').trim(), lengthMax))
  }
}

/** The parts of a URL that may be secret. */
export function secretsOfUrl(text: string): string[] {
  const { href, pathname, search, username, password } = new URL(text)
  const parts = [...pathname.split('/'), ...search.slice(1).split(/[&=]/)].filter(({ length }) => length >= 8)
  return [
    href,
    text,
    `${pathname}${search}`,
    ...(pathname.length > 1 ? [pathname] : []),
    search,
    ...parts.flatMap((part) => [part, decoded(part)]),
    decoded(username),
    decoded(password),
  ]
}

/** Scheme, host and port, and that there is more. */
export function shownTarget(text: string): string {
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname === '/' && search === '' ? '' : '/***'}`
}

export function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

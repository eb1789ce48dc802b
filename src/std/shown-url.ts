// shown-url.ts: how a URL is shown. Owner of "no message shows a password that stands in a URL".
//
//   http://ann:pw@proxy:3128      http://***@proxy:3128
//   https://host/path?token=x#y   https://host/path?***
//   http://ann:p/w@proxy          a text of 21 characters: in what is no URL, any part may be the password
//
// shownUrl() is for a value that should be a URL: an option of the config or of a command. withoutLogins() is
// for a sentence that may contain one.

const hidden = '***'
const wellFormed =
  /^([a-z][a-z0-9+.-]*:\/\/)?([^/?#@]*@)?((?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?)(\/[^?#@]*)?([?#].*)?$/is
/** From a scheme to the last "@" of the word, and `user:password@`. */
const loginInUrl = /\b([a-z][a-z0-9+.-]*:\/+)[^\s"'`<>]*@/gi
const loginAlone = /[^\s"'`<>(){},;:@/]+:(?!\/)[^\s"'`<>@]*(?:@[^\s"'`<>@]*)*@(?=[\w[*$])/g
const queryInUrl = /\b([a-z][a-z0-9+.-]*:\/+[^\s"'`<>?#]+[?#])[^\s"'`<>]+/gi

/** The URL without user, password, query and fragment; where it is no URL, only its length. */
export function shownUrl(text: string): string {
  const [, scheme, login, place = '', path = '', rest] = wellFormed.exec(text) ?? []
  const isPlace = scheme !== undefined || (login === undefined && /:\d+$/.test(place) && path === '')
  if (!isPlace) return lengthOf(text)
  const mark = rest === undefined ? '' : `${rest[0]}${hidden}`
  return `${scheme ?? ''}${login === undefined ? '' : `${hidden}@`}${place}${path}${mark}`
}

/** What to show of a text that nobody may see. */
export function lengthOf(text: string): string {
  return `a text of ${text.length} character${text.length === 1 ? '' : 's'}`
}

/** Whether a value may contain a password, whatever option it was written for. */
export function mayHoldLogin(text: string): boolean {
  return /:[^]*@|:\/[^]*[?#]./.test(text)
}

/** A sentence or a log without the users, passwords and queries of its URLs. */
export function withoutLogins(text: string): string {
  return text
    .replace(loginInUrl, `$1${hidden}@`)
    .replace(loginAlone, `${hidden}@`)
    .replace(queryInUrl, `$1${hidden}`)
}

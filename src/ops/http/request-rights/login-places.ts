// login-places.ts: where a browser goes to log in, and afterwards.

import type { TextAnswer } from '../json-answer.ts'

export const loginUrl = '/login'

const placeLengthMax = 2000

/** A path of this server; `/` for anything else, so that nobody can be sent to another site. */
export function ownPlace(text: string): string {
  const isPath = /^\/(?![/\\])[\x21-\x7e]*$/.test(text) && text.length <= placeLengthMax
  if (!isPath || text.startsWith(loginUrl) || text.startsWith('/logout')) return '/'
  try {
    return new URL(text, 'http://own.invalid').host === 'own.invalid' ? text : '/'
  } catch {
    return '/'
  }
}

/** `failed`: why the last try was refused. */
export function loginPlace(to: string, failed: string | null = null): TextAnswer {
  const query = new URLSearchParams()
  if (failed !== null) query.set('failed', failed)
  if (ownPlace(to) !== '/') query.set('to', ownPlace(to))
  return seeOther(query.size === 0 ? loginUrl : `${loginUrl}?${query.toString()}`)
}

export function seeOther(place: string, headers: Readonly<Record<string, string>> = {}): TextAnswer {
  return {
    status: 303,
    contentType: 'text/plain; charset=utf-8',
    body: '',
    headers: { ...headers, location: place },
  }
}

/**
 * A browser sends no cookie of a session with a link of another site, nor with the redirects that follow from
 * it. This page goes on to the login as a link of our own, and the login sends the browser back to `to` where
 * it has a session. It does not go back by itself: that could be endless.
 */
export function goOn(to: string): TextAnswer {
  const place = escaped(loginPlace(to).headers?.['location'] ?? loginUrl)
  return {
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: [
      '<!doctype html>',
      `<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${place}">`,
      `<title>telemetry gateway</title></head><body><p><a href="${place}">Continue</a></p></body></html>`,
      '',
    ].join('\n'),
  }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
}

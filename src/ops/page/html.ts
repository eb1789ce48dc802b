// html.ts: HTML that escapes what is put into it. A value in the template is text, unless it was made by the
// template itself; so names of devices, topics and payloads cannot become markup.
//
//   html`<td>${name}</td>`            name is text
//   html`<ul>${names.map(item)}</ul>` lists are joined; null, undefined and false are nothing
//
// Attributes stand in double quotes. Characters that hide or reorder text are written as `\u{202e}`.

const markup = Symbol('markup')

/** Markup made by `html`. */
export type Html = { readonly [markup]: string }

export type HtmlValue = Html | string | number | null | undefined | false | readonly HtmlValue[]

export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let text = parts[0] ?? ''
  for (const [index, value] of values.entries()) text += textOf(value) + (parts[index + 1] ?? '')
  return { [markup]: text }
}

export const nothing: Html = { [markup]: '' }

/** The markup as the text of an answer. */
export function markupOf(value: Html): string {
  return value[markup]
}

function textOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return ''
  if (typeof value === 'string') return escaped(value)
  if (typeof value === 'number') return String(value)
  if (isList(value)) return value.map(textOf).join('')
  return value[markup]
}

function isList(value: HtmlValue): value is readonly HtmlValue[] {
  return Array.isArray(value)
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

// Control characters but tab and line feed, format characters (zero-width and bidirectional marks included),
// line and paragraph separators, and halves of a character.
const hidden = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

function escaped(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => entities[character] ?? '')
    .replace(hidden, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

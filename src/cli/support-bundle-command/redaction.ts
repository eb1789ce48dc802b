// redaction.ts: what a support bundle must not contain: secrets, and positions unless they are asked for.
//
//   the config      without comments; values of options with a secret are ***, users of URLs too; of
//                   receivers of alerts, host and program stay
//   every text      secrets from the environment or a file are replaced in it, and so are coordinates and
//                   other values of positions

import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isCollection, isScalar, isSeq, parseDocument, visit } from 'yaml'
import { hiddenText as hidden, namesSecret } from '../../std/secret.ts'
import { mayHoldLogin, shownUrl, withoutLogins } from '../../std/shown-url.ts'

/** Shorter values would replace usual words. */
const secretLengthMin = 6
const literalLengthMin = 4
/** Shorter arguments of commands are options and usual words. */
const argumentLengthMin = 8
const reference = /\$\{(env|file):([^}]+)\}/g

/** The config as YAML that may be shown, and the secrets that stand in it: `check` may quote them. */
export function shownConfig(text: string): { shown: string; secrets: string[] } {
  const secrets: string[] = []
  const document = parseDocument(text, { prettyErrors: false })
  if (document.errors.length > 0)
    return { shown: '# The config is not valid YAML. It is left out: it may contain secrets.\n', secrets }
  hideReceivers(document.get('alerts'), secrets)
  visit(document, {
    Node: (_, node) => {
      node.comment = null
      node.commentBefore = null
    },
    Scalar: (position, node) => {
      node.comment = null
      node.commentBefore = null
      const { value } = node
      if (position === 'key' || typeof value !== 'string' || !mayHoldLogin(value)) return
      if (value.length >= literalLengthMin) secrets.push(value)
      node.value = shownUrl(value)
    },
    Pair: (_, { key, value }) => {
      const name = Object(key) as { value?: unknown }
      const scalar = Object(value) as { value?: unknown }
      if (typeof scalar.value !== 'string' && typeof scalar.value !== 'number') return
      const isReference = /^\$\{[^}]+\}$/.test(String(scalar.value))
      if (namesSecret(String(name.value)) && !isReference && !isPath(String(name.value))) {
        if (String(scalar.value).length >= literalLengthMin) secrets.push(String(scalar.value))
        scalar.value = hidden
      }
    },
  })
  document.comment = null
  document.commentBefore = null
  return { shown: withoutLogins(String(document)), secrets }
}

/** The path of a webhook is a secret often, and so may be an argument of a command. */
function hideReceivers(alerts: unknown, secrets: string[]): void {
  if (!isCollection(alerts)) return
  const keep = (text: string) => {
    if (text.length >= argumentLengthMin) secrets.push(text)
  }
  visit(alerts, {
    Pair: (_, { key, value }) => {
      const name = String((Object(key) as { value?: unknown }).value)
      if (name.endsWith('url') && isScalar(value) && typeof value.value === 'string') {
        const written = value.value
        if (written.includes('${') || !URL.canParse(written)) return
        const { origin, pathname, search } = new URL(written)
        for (const part of [written, ...pathname.split('/'), ...search.split(/[?&=]/)]) keep(part)
        value.value = `${origin}/${hidden}`
      } else if (name === 'command' && isSeq(value))
        for (const word of value.items.slice(1)) {
          if (!isScalar(word)) continue
          keep(String(word.value))
          word.value = hidden
        }
    },
  })
}

/** Options that name a file, an interval or a limit. */
function isPath(name: string): boolean {
  return /_file$|_after$|_bytes$|^max_/.test(name)
}

/** The secrets that a config gets from elsewhere. `files`: more files that have some. */
export async function secretsOf(
  configPath: string,
  configText: string,
  { env, files }: { env: NodeJS.ProcessEnv; files: readonly string[] },
): Promise<string[]> {
  const secrets = new Set<string>()
  const add = (text: string | undefined) => {
    for (const part of [text ?? '', ...(text ?? '').split(/\r?\n/)])
      if (part.trim().length >= secretLengthMin) secrets.add(part.trim())
  }
  for (const [name, value] of Object.entries(env)) if (namesSecret(name)) add(value)
  const paths = new Set(files)
  for (const [, kind, name = ''] of configText.matchAll(reference))
    if (kind === 'env') add(env[name])
    else paths.add(resolve(dirname(resolve(configPath)), name))
  for (const path of paths) {
    // A file that cannot be read gave nothing to this command.
    const text = await readFile(path, 'utf8').catch(() => '')
    add(text)
    for (const [, value] of text.matchAll(/:\s*"([^"]+)"/g)) add(value)
    if (/^device\s*,\s*key/.test(text))
      for (const [, value] of text.matchAll(/,\s*"?([^\r\n]*?)"?\s*$/gm)) add(value)
  }
  return [...secrets].sort((a, b) => b.length - a.length)
}

const positionFields =
  /("(?:lat|lon|lng|latitude|longitude|position|lastValue)"\s*:\s*)("(?:[^"\\]|\\.)*"|-?[\d.]+)/gi
/** A number with four or more decimals is a place to ten metres. */
const coordinate = /-?\b\d{1,3}\.\d{4,}\b/g

export function redacted(
  text: string,
  { secrets, positions }: { secrets: readonly string[]; positions: boolean },
): string {
  let shown = text
  for (const secret of secrets) {
    shown = shown.replaceAll(secret, hidden)
    // As it stands in JSON.
    const escaped = JSON.stringify(secret).slice(1, -1)
    if (escaped !== secret) shown = shown.replaceAll(escaped, hidden)
  }
  shown = withoutLogins(shown)
  return positions ? shown : shown.replaceAll(positionFields, `$1"${hidden}"`).replaceAll(coordinate, hidden)
}

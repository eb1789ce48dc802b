// yaml-source.ts: parses the text of a config file into a tree in which every value has its line and column.
//
// YAML 1.2 with anchors, aliases and merge keys. The expansion of aliases is bounded (`aliasesMax`), so that
// a page of text cannot become gigabytes. Broken syntax gives problems and no tree: in a partial tree,
// options would be reported as missing that are not.

import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import type { Document, Node, Pair, YAMLError } from 'yaml'

const aliasesMax = 1000
const visitsMax = 1_000_000

export type Position = { line: number; column: number }

export type Keys = readonly (string | number)[]

export type YamlProblem = Position & { message: string }

export type YamlSource = {
  document: Document
  problems: readonly YamlProblem[]
  /** Whether the syntax is valid, so that the tree is complete. */
  sound: boolean
  /** The whole file as a plain value; throws RangeError for too many aliases. */
  plain(): unknown
  /** Drops the other keys of the root. `ops.listen` keeps only this option of `ops`. */
  keepOnly(keys: readonly string[]): void
  /** The node at a path, through aliases; undefined where there is none. */
  nodeAt(keys: Keys): Node | undefined
  /** Calls `visit` for each value that is no map and no list, with what `descend` made of the way there. */
  walk<Place>(
    root: Place,
    descend: (place: Place, key: string | number) => Place | null,
    visit: (node: Node, place: Place) => void,
  ): void
  /** The position of the key at the end of a path, or of its nearest parent that exists. */
  positionOf(keys: Keys): Position
  positionOfNode(node: Node): Position
}

export function parseYamlSource(text: string): YamlSource {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true })
  // After the first error in the syntax the parser only guesses: one missing quote spoils every line below.
  const broken = document.errors.find(({ code }) => code !== 'DUPLICATE_KEY')
  const reported = broken === undefined ? [...document.errors, ...document.warnings] : [broken]

  return {
    document,
    problems: reported.map(problemOf),
    sound: broken === undefined,
    plain,
    keepOnly,
    nodeAt,
    walk,
    positionOf,
    positionOfNode,
  }

  function plain(): unknown {
    try {
      return document.toJS({ maxAliasCount: aliasesMax })
    } catch (error) {
      throw new RangeError(`The aliases of the file expand to more than ${aliasesMax} values.`, {
        cause: error,
      })
    }
  }

  function keepOnly(keys: readonly string[]): void {
    const root = document.contents
    if (!isMap(root)) return
    root.items = root.items.filter(({ key, value }) => {
      if (!isScalar(key)) return false
      const section = String(key.value)
      if (keys.includes(section)) return true
      const options = resolved(value)
      if (!keys.some((each) => each.startsWith(`${section}.`)) || !isMap(options)) return false
      options.items = options.items.filter(
        ({ key: option }) => isScalar(option) && keys.includes(`${section}.${String(option.value)}`),
      )
      return true
    })
  }

  function positionAt(offset: number): Position {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }

  function positionOfNode(node: Node): Position {
    return positionAt(node.range?.[0] ?? 0)
  }

  function problemOf(error: YAMLError): YamlProblem {
    const position = positionAt(error.pos[0])
    return { ...position, message: sentenceFor(error, { text, line: position.line }) }
  }

  function nodeAt(keys: Keys): Node | undefined {
    let node = resolved(document.contents)
    for (const key of keys) {
      node = resolved(childOf(node, key)?.value)
      if (!node) return undefined
    }
    return node
  }

  function walk<Place>(
    root: Place,
    descend: (place: Place, key: string | number) => Place | null,
    visit: (node: Node, place: Place) => void,
  ): void {
    let visits = 0
    enter(document.contents, root)

    function enter(value: unknown, place: Place | null): void {
      const node = resolved(value)
      // Aliases of aliases may be endless; plain() refuses such a file.
      if (!node || place === null || visits > visitsMax) return
      visits += 1
      if (isSeq(node)) for (const [index, item] of node.items.entries()) enter(item, descend(place, index))
      else if (isMap(node))
        for (const { key, value: own } of node.items) {
          if (!isScalar(key)) continue
          // A merged map has the keys of the map that it is merged into.
          if (key.value === '<<') mergedMaps(own).forEach((map) => enter(map, place))
          else enter(own, descend(place, String(key.value)))
        }
      else visit(node, place)
    }

    function mergedMaps(value: unknown): unknown[] {
      const node = resolved(value)
      return isSeq(node) ? node.items : [node]
    }
  }

  function positionOf(keys: Keys): Position {
    let node = resolved(document.contents)
    let offset = node?.range?.[0] ?? 0
    for (const key of keys) {
      const child = childOf(node, key)
      if (!child) break
      offset = child.at?.range?.[0] ?? offset
      node = resolved(child.value)
    }
    return positionAt(offset)
  }

  /** The target of an alias. An alias of itself does not resolve. */
  function resolved(node: unknown): Node | undefined {
    if (isAlias(node)) return node.resolve(document)
    return isMap(node) || isSeq(node) || isScalar(node) ? node : undefined
  }
}

/** A child, and the node at which its position is reported: its key in a map, itself in a list. */
function childOf(
  node: Node | undefined,
  key: string | number,
): { at: Node | undefined; value: unknown } | undefined {
  if (isSeq(node)) {
    const value = node.items[Number(key)]
    return value === undefined ? undefined : { at: value as Node, value }
  }
  if (!isMap(node)) return undefined
  // Of a duplicate key the last value counts.
  const pair = node.items.findLast(
    (candidate: Pair) => isScalar(candidate.key) && String(candidate.key.value) === String(key),
  )
  return pair ? { at: pair.key as Node, value: pair.value } : undefined
}

type Place = { text: string; line: number }

function sentenceFor({ code, message }: YAMLError, place: Place): string {
  if (code === 'DUPLICATE_KEY') return 'this key occurs twice in one map. Keep one of them.'
  if (code === 'MULTIPLE_DOCS')
    return 'the file has more than one YAML document. Keep only the part before this "---".'
  if (code === 'TAG_RESOLVE_FAILED') return `${firstLine(message)}. The config uses no YAML tags ("!").`
  if (code === 'TAB_AS_INDENT') return 'the line is indented with a tab. YAML needs spaces.'
  // What the parser quotes may be a part of a password.
  return `${firstLine(message)
    .replace(/: ".*$/, '')
    .replace(/\.?$/, '.')}${hintFor(message, place)}`
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? text
}

/** Likely causes by what the parser says, where the lines show none. */
const hintsByMessage: readonly (readonly [RegExp, string])[] = [
  [/^Invalid escape/, 'In double quotes a backslash begins an escape. Use single quotes.'],
  [
    /^All (mapping|sequence) items|^A block sequence may not be used/,
    'Indent the line with as many spaces as the other keys or entries of the same level.',
  ],
  [/^Unexpected flow-(seq|map)-start/, 'Put a text that contains "[" or "{" in quotes.'],
  [/^Unexpected (alias|anchor|tag)/, 'Put a value that begins with "*", "&" or "!" in quotes.'],
  [/^Sequence item without/, 'Begin each entry of the list with "- ".'],
  [
    /^Unexpected (flow-(map|seq)-end|scalar)|^Document contains/,
    'There may be a "}", "]" or quote too many.',
  ],
  [
    /^Nested mappings are not allowed|^Implicit (map )?keys?/,
    'Check the indentation of this line and of the line above: a key has either a value on its line or ' +
      'further keys below.',
  ],
]

/** Likely causes by what the line contains, the surest first. */
const hintsByLine: readonly (readonly [RegExp, string])[] = [
  [/^(<{7}|={7}|>{7})/, 'The line is left over from a merge conflict. Delete it.'],
  [/^ *\t/, 'The line is indented with a tab. YAML needs spaces.'],
  [/^ *\u00a0/, 'The line is indented with non-breaking spaces. YAML needs usual ones.'],
  [/[:-] +[@`%]/, 'Put a value that begins with "@", "`" or "%" in quotes.'],
  [/[:-] +[*&!](?![\w-]+( |$))/, 'Put a value that begins with "*", "&" or "!" in quotes.'],
  [/[:-] +(\{[^{}]*\}|\[[^[\]]*\])[^\s,#}\]]/, 'Put a value that begins with "{" or "[" in quotes.'],
  [/^[^"'#]*[\w-]+: +[^"'{[#]*[\w)]: /, 'Put a value that contains ": " in quotes.'],
]

/** `key:value` and a key without ":". URLs and times have a colon without a space, too. */
const noSpace = /^ *(- +)?[A-Za-z_][\w-]*:(?!\/\/)[^\s:/]/
const noColon = /^ *(- +)?[A-Za-z_][\w-]* *$/

/** What probably causes a syntax error, as a sentence; '' where nothing suggests itself. */
function hintFor(message: string, { text, line }: Place): string {
  const lines = text.split('\n')
  const own = lines[line - 1] ?? ''
  const unquoted = /(^|[^"'])\$\{/.test(own) && /[{[]/.test(own.replace(/\$\{/g, ''))
  if (unquoted) return ' Inside { } or [ ] put it in quotes: "${env:NAME}".'
  const [, mark = ''] = /^Missing closing (["'])quote/.exec(message) ?? []
  if (mark !== '') return ` ${openQuoteHint(lines, mark)}`
  if (/end with a [\]}]|must be sufficiently indented/.test(message))
    return ' A "{" or "[" above is not closed, or its lines are not indented deeper than its key.'
  const near = [own, ...lines.slice(Math.max(0, line - 2), line - 1)].filter((one) => one.trim() !== '')
  const byLine = near.flatMap((one) => hintsByLine.filter(([pattern]) => pattern.test(one)))[0]
  if (byLine !== undefined) return ` ${byLine[1]}`
  const isAboutKey = /^(Implicit|Nested|All mapping|Unexpected|Missing)/.test(message)
  if (isAboutKey && near.some((one) => noSpace.test(one)))
    return ' Write a space after the colon: "key: value".'
  if (isAboutKey && near.some((one) => noColon.test(one))) return ' A key needs a colon: "key: value".'
  const byMessage = hintsByMessage.find(([pattern]) => pattern.test(message))
  return byMessage === undefined ? '' : ` ${byMessage[1]}`
}

/** The parser reads an open quote to the end of the file, and reports it there. */
function openQuoteHint(lines: readonly string[], mark: string): string {
  const opened = lines.findIndex((line) => (line.replace(/#.*$/, '').split(mark).length - 1) % 2 === 1)
  const where = opened === -1 ? '' : `, probably in line ${opened + 1}`
  return `A quote is opened${where}, and not closed.`
}

# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Turns preprocessed device code into C++: python3 rewrite.py MODULE < kernel.ii > host.ii

What no macro of prelude.h can do: asm statements become calls of the interpreter of PTX, variables in shared
memory references into the block's memory, and entry points functions that take their argument by reference,
with a
description that the driver finds by name."""
import re
import sys

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[()\[\]{},:;]')


def closing(text, at):
    """Index behind the bracket that closes the one at `at`."""
    depth = 0
    for token in TOKEN.finditer(text, at):
        if token.group() in '([{':
            depth += 1
        elif token.group() in ')]}':
            depth -= 1
            if depth == 0:
                return token.end()
    raise SystemExit('no closing bracket: ' + text[at:at + 80])


def split(text, by):
    """Parts of text between `by` outside of brackets and strings."""
    parts, depth, start = [], 0, 0
    for token in TOKEN.finditer(text):
        if token.group() in '([{':
            depth += 1
        elif token.group() in ')]}':
            depth -= 1
        elif token.group() == by and depth == 0:
            parts.append(text[start:token.start()])
            start = token.end()
    return parts + [text[start:]]


def asm_call(body):
    sections = split(body, ':') + ['', '']
    text = re.sub(r'^# .*$', '', sections[0], flags=re.M).strip()
    operands = []
    for section, kind in ((sections[1], 'out'), (sections[2], 'in')):
        for operand in split(re.sub(r'^# .*$', '', section, flags=re.M), ','):
            operand = operand.strip()
            if operand:
                value = re.match(r'"[^"]*"\s*(\(.*\))$', operand, re.S).group(1)
                operands.append('tn_emulated_%s%s' % (kind, value))
    if re.fullmatch(r'("\s*"\s*)+', text):
        return 'do {} while (0)'
    return ('do { static tn_emulated_asm tn_asm = {%s, nullptr}; tn_emulated_operand tn_ops[] = {%s}; '
            'tn_emulated_ptx_run(&tn_asm, tn_ops, %d); } while (0)'
            % (text, ', '.join(operands) or '{}', len(operands)))


def rewrite_asm(text):
    out, at = [], 0
    for found in re.finditer(r'\basm\s*(?:volatile\s*)?\(', text):
        end = closing(text, found.end() - 1)
        body = text[found.end():end - 1]
        out += [text[at:found.start()], asm_call(body), '\n' * 0]
        at = end
    return ''.join(out) + text[at:]


def shared_variables(found):
    extern, align, kind, names = found.group(1), found.group(2), found.group(3), found.group(4)
    out = []
    for name in split(names, ','):
        name, dims = re.match(r'\s*(\w+)\s*((?:\[[^\]]*\]\s*)*)$', name).groups()
        least = 'alignof(%s)' % kind if not align else '%s > alignof(%s) ? %s : alignof(%s)' % (align, kind,
                                                                                                align, kind)
        if extern:
            out.append('%s *%s = (%s *)tn_emulated_shared_dynamic(%s);' % (kind, name, kind, least))
        else:
            out.append('static const tn_emulated_site tn_site_%s = {0}; typedef %s tn_type_%s%s; tn_type_%s '
                       '&%s = *(tn_type_%s *)'
                       'tn_emulated_shared_static(&tn_site_%s, sizeof(tn_type_%s), %s);'
                       % (name, kind, name, dims, name, name, name, name, name, least))
    return ' '.join(out)


def rewrite_shared(text):
    return re.sub(r'(extern\s+)?\btn_emulated_shared\s+(?:alignas\((\d+)\)\s*)?([\w:]+)\s+([^;]*);',
                  shared_variables, text)


def rewrite_entries(text, module):
    out, at = [], 0
    for found in re.finditer(r'extern\s+"C"\s+tn_emulated_global\s+void\s+(tn_emulated_bounds\s*\()?', text):
        bounds, behind = '1024', found.end()
        if found.group(1):
            behind = closing(text, found.end() - 1)
            bounds = 'tn_emulated_first' + text[found.end() - 1:behind]
        head = re.compile(r'\s*(\w+)\s*\(\s*const\s+'
                          r'tn_emulated_param\s+(\w+)\s+(\w+)\s*\)').match(text, behind)
        name, kind, arg = head.groups()
        out += [text[at:found.start()],
                'extern "C" void {0}(const {1} &{2}); extern "C" __attribute__((visibility("default"))) '
                'const tn_emulated_entry '
                '{0}_entry = {{"{0}", "{3}", (void (*)(const void *)){0}, sizeof({1}), (uint32_t){4}}}; '
                'extern "C" void {0}(const {1} &{2})'.format(name, kind, arg, module, bounds)]
        at = head.end()
    return ''.join(out) + text[at:]


text = sys.stdin.read()
text = rewrite_entries(rewrite_shared(rewrite_asm(text)), sys.argv[1])
left = re.search(r'tn_emulated_(global|shared|bounds|param)\b.*', text)
if left:
    raise SystemExit('not understood: ' + left.group())
sys.stdout.write(text)

# Doxygen's view of a header: the plain comment that opens it becomes the documentation of the file, word for word, and
# a remark behind a member becomes the member's. Docstrings hold no markup: < and > are themselves.
BEGIN { opened = 0 }
!opened && /^\/\/ SPDX/ { next }
!opened && /^\/\// {
    opened = 1
    print "/*! \\file"
    print "\\verbatim"
    inside = 1
}
inside && !/^\/\// {
    inside = 0
    print "\\endverbatim */"
}
inside { sub(/^\/\/ ?/, ""); print; next }
opened && /^ .*;  *\/\/ / { sub(/\/\/ /, "///< ") }
# A template that inherits from itself with other arguments looks like a circle.
/^struct [a-z_]+ : / { split($0, word, /[ <]/); if (word[2] == word[4]) sub(/ : .*> \{/, " {") }
/^ *\/\/\// { gsub(/</, "\\<"); gsub(/>/, "\\>"); gsub(/@/, "\\@") }
{ print }

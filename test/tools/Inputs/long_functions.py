"""Writes long.cpp: a long function that says nothing, one that says why, and a short one that says it, too."""
lines = "  step();\n" * 60
with open("long.cpp", "w", encoding="utf-8") as file:
    file.write("void silent() {\n" + lines + "}\n\n/// Long: one case after the other.\nvoid spoken() {\n" + lines
               + "}\n\n/// Long: it is not.\nvoid brief() {\n}\n")
